"""How a run that was admitted may fail: for each code what is said, and the way out.

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
    "sql.overflow": ("a number is too large for its type", "Cast to a wider DECIMAL first."),
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
