"""The version of this project, said once; pyproject.toml is compared with it by a test."""

from typing import Final

VERSION: Final = "0.1.0"
