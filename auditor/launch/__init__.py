"""What an engine command line, an image reference and a version mean."""
