"""The engine build and the settings that a result depends on; no engine is loaded for them."""

from __future__ import annotations

ENGINE_VERSION = "2.0.1"
ENGINE_BUILD = "8d78114e90"
"""The source id of that release, as PRAGMA version gives it."""

THREADS = 1
SETTINGS = (
    "temp_directory=''",  # before external access is shut, or it cannot be set any more
    "max_temp_directory_size='0B'",
    "autoinstall_known_extensions=false",
    "autoload_known_extensions=false",
    "allow_community_extensions=false",
    "allow_persistent_secrets=false",
    "allow_extension_repositories='forbidden'",
    "python_enable_replacements=false",
    "python_scan_all_frames=false",
    "enable_external_file_cache=false",
    "TimeZone='UTC'",  # after connecting: the default is the host's own zone
    "Calendar='gregorian'",
    "default_null_order='NULLS_LAST'",
    "preserve_insertion_order=true",
    "async_threads=0",
    "arrow_large_buffer_size=false",
    "produce_arrow_string_view=false",
)


HOST_FACTS = ("cpu", "libc", "sandbox")
"""What a row says of the machine beside the settings; a replay tells it, and compares it not."""


def settings_that_matter(memory_bytes: int) -> dict[str, str]:
    """Name to value, for the ledger row; the same on every machine."""
    pairs = dict(line.split("=", 1) for line in SETTINGS)
    pairs["threads"] = str(THREADS)
    pairs["memory_limit"] = f"{memory_bytes}B"
    return {k: v.strip("'") for k, v in sorted(pairs.items())}
