"""How a run that was admitted may fail: its code by the engine's words, what is said, a way out.

The engine's own words are data and stay in its worker; these are all that a model is shown.
"""

from __future__ import annotations

from tieout.executor.sql.refusal import WAYS_OUT

FAILURES = {
    "sql.conversion": (
        "a value cannot be converted",
        (
            "TRY_CAST(x AS DATE) gives NULL for it, which sums and filters leave out unsaid: count "
            "such values too, with count_if(x IS NOT NULL AND TRY_CAST(x AS DATE) IS NULL)."
        ),
    ),
    "sql.division_by_zero": (
        "a number is divided by zero",
        "Divide by nullif(x, 0), which gives NULL, or leave such rows out.",
    ),
    "sql.overflow": (
        "a number does not fit its type",
        (
            "Cast to a wider DECIMAL first. Before the point a numerator may have 18 digits, the "
            "total of an average 20: divide smaller numbers."
        ),
    ),
    "sql.out_of_range": (
        "a value lies outside of what the type or the function can hold",
        "Leave such rows out, or cast to a wider type first.",
    ),
    "sql.not_finite": (
        "a number that is infinite, or is not a number, cannot be converted",
        "Leave such rows out, or divide by nullif(x, 0).",
    ),
    "sql.several_rows": (
        "a subquery in the place of one value gave several rows",
        "Aggregate in the subquery, or join it.",
    ),
    "sql.value": ("a function was given a value it cannot take", "Leave such rows out first."),
    "sql.too_complex": ("the query is nested too deep", WAYS_OUT["sql.too_complex"]),
    "limit.seconds": ("the query ran longer than it may", "Narrow it, or split it into steps."),
    "limit.bytes": ("the result is larger than it may be", "Select fewer columns or rows."),
    "engine.failed": ("the engine could not run the query", "Write the query another way."),
    "engine.input": ("a table could not be handed to the engine", "Run tieout verify."),
    "engine.sandbox": (
        "the engine's worker could not shut itself in as it did before",
        "Run tieout doctor; it says what the kernel offers.",
    ),
    "engine.cache": (
        "an engine file could not be read",
        "Empty the cache folder; it is made anew.",
    ),
}

_NUMBERS = (
    *("INT8", "INT16", "INT32", "INT64", "INT128", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("UINT128", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE"),
)
"""As the engine names them where a number does not fit what it is cast to."""
_NOT_FINITE = ("inf", "-inf", "nan", "-nan")
RUN_CODES = (
    ("Invalid Input Error", "More than one row", "sql.several_rows"),
    ("Invalid Input Error", "Division by zero", "sql.division_by_zero"),
    ("Invalid Input Error", "decimal_division: division by zero", "sql.division_by_zero"),
    ("Invalid Input Error", "", "sql.value"),
    ("Out of Range Error", "Overflow", "sql.overflow"),
    ("Out of Range Error", "decimal_average: ", "sql.overflow"),
    ("Out of Range Error", "", "sql.out_of_range"),
    ("Conversion Error", "Date and time not in timestamp range", "sql.out_of_range"),
    ("Conversion Error", "Date out of range", "sql.out_of_range"),
    *(
        ("Conversion Error", f"{start}{value}", "sql.not_finite")
        for value in _NOT_FINITE
        for start in (
            "Type FLOAT with value ",
            "Type DOUBLE with value ",
            "Could not cast value ",
        )
    ),
    *(("Conversion Error", f"Type {name} with value ", "sql.overflow") for name in _NUMBERS),
    ("Conversion Error", "Casting value ", "sql.overflow"),
    ("Conversion Error", "Could not cast value ", "sql.overflow"),
    ("Conversion Error", "Failed to cast decimal value ", "sql.overflow"),
    ("Conversion Error", "", "sql.conversion"),
    ("Out of Memory Error", "", "limit.memory"),
    ("INTERRUPT Error", "", "limit.seconds"),
    ("IO Error", "", "engine.cache"),
)
"""The engine names its class first; in a stream that is all that is left of the exception.

The words after it count from their beginning only, which no cell's value reaches; but that a number
is not finite.
"""


def code_of(said: str) -> str:
    """The code of what the engine said; its words stay where they are: they may hold values."""
    named, _, words = said.partition(": ")
    for kind, start, code in RUN_CODES:
        if named == kind and words.startswith(start):
            return code
    return "engine.failed"
