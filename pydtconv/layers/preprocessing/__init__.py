"""Layers that prepare data: images and what belongs to them, augmentation, categories, words, sound."""
