"""Tieout: answers whose figures lead back to the rows and the line of the file."""
