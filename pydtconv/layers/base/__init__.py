"""What all layers stand on: the class `Layer`, its weights and config, how it is called, masks, and its attributes."""
