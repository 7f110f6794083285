"""Every bound of a run, named once. Reaching one is a recorded outcome, never a silent cut.

Source: DESIGN §6. A workspace changes them in `[limits]` of tieout.toml.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """Bounds with their defaults; the unit is the last word of the name, else a count."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    turns_max: int = Field(default=12, ge=1, le=100)
    """Model turns a question may take."""
    steps_max: int = Field(default=40, ge=1, le=250)
    """Steps a question may take over all its turns."""
    refusals_max: int = Field(default=3, ge=0, le=20)
    """Plans or answers of one question that are sent back before it is given up."""
    rows_shown_max: int = Field(default=20, ge=1, le=1_000)
    """Rows of a result that an observation shows."""
    chars_shown_max: int = Field(default=400, ge=20, le=10_000)
    """Characters of one cell that an observation shows."""
    rows_stored_max: int = Field(default=5_000_000, ge=1, le=100_000_000)
    """Rows of a result that are stored; more make it partial."""
    result_mib_max: int = Field(default=1_024, ge=1, le=65_536)
    """Bytes of a result, in MiB."""
    cell_bytes_max: int = Field(default=1_048_576, ge=1_000, le=1 << 30)
    """Bytes of one text of a result."""
    step_seconds_max: int = Field(default=60, ge=1, le=3_600)
    """Seconds, of CPU and by the clock, of a step's run, and of its countercheck. Its validation
    has these too, but no more than 10."""
    memory_mib_max: int = Field(default=2_048, ge=256, le=65_536)
    """Memory of the engine in each of them."""
    sql_chars_max: int = Field(default=32_768, ge=100, le=262_144)
    """Characters of one SQL text."""
    reply_chars_max: int = Field(default=262_144, ge=1_000, le=4_194_304)
    """Characters of one reply of a model."""
    prompt_chars_max: int = Field(default=400_000, ge=10_000, le=4_000_000)
    """Characters of one request to a model."""
    reply_tokens_max: int = Field(default=8_192, ge=256, le=64_000)
    """Tokens asked of a model for one reply."""
    question_tokens_max: int = Field(default=500_000, ge=1_000, le=100_000_000)
    """Tokens (in and out) that a question may use."""
    source_bytes_max: int = Field(default=2_147_483_648, ge=1, le=1 << 40)
    """Bytes of one source file."""
    documents_max: int = Field(default=100_000, ge=1, le=10_000_000)
    """Documents of one text source."""
