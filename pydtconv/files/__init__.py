"""Files: reading and writing them whole, formats of arrays and pictures, archives, downloads, folders of images."""
