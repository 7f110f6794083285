"""What other engines have that this one has not, and what to write instead: closed tables."""

from __future__ import annotations

OWN_CLOCKS = frozenset({"now", "today"})
"""Functions of this engine that are written as words elsewhere."""
CLOCKS = frozenset(
    {
        *(
            "getdate",
            "getutcdate",
            "sysdate",
            "sysdatetime",
            "sysutcdatetime",
            "curdate",
            "curtime",
        ),
        *("systimestamp", "utc_date", "utc_time", "utc_timestamp", "unix_timestamp"),
        *("statement_timestamp", "clock_timestamp", "timeofday"),
    }
)
"""Names by which other engines read the clock, as words or as calls."""

_DAYS = "Write x + INTERVAL 1 DAY, or x - INTERVAL 1 MONTH."
_BETWEEN = "Write date_diff('day', a, b), with the unit as a text."
_TEXT_OF_DATE = "Write strftime(x, '%Y-%m')."
_DATE_OF_TEXT = "Write strptime(x, '%d/%m/%Y')::DATE, or DATE '2026-06-30'."
_CAST = "Write CAST(x AS DATE)."
_FILLED = "Write coalesce(x, y)."
_CHOICE = "Write CASE WHEN a THEN b ELSE c END."
_NOT_ZERO = "Write a / nullif(b, 0), which gives NULL."
_POSITION = "Write strpos(x, 'part')."
_JOINED = "Write string_agg(x, ',' ORDER BY x)."
INSTEAD = {
    **dict.fromkeys(("dateadd", "adddate", "subdate", "add_months"), _DAYS),
    **dict.fromkeys(("timestampadd", "datetime_add", "timestamp_add", "datetime_sub"), _DAYS),
    **dict.fromkeys(("timestampdiff", "datetime_diff", "timestamp_diff", "days_between"), _BETWEEN),
    **dict.fromkeys(("months_between", "datediff_big"), "Write date_diff('month', a, b)."),
    "eomonth": "Write last_day(x).",
    **dict.fromkeys(("to_char", "format_date", "date_format", "format_datetime"), _TEXT_OF_DATE),
    **dict.fromkeys(("to_date", "parse_date", "str_to_date", "parse_datetime"), _DATE_OF_TEXT),
    **dict.fromkeys(("datefromparts", "date_from_parts"), "Write make_date(2026, 6, 30)."),
    **dict.fromkeys(("datetime_trunc", "timestamp_trunc"), "Write date_trunc('month', x)."),
    **dict.fromkeys(("to_number", "to_decimal", "str"), "Write CAST(x AS DECIMAL(18,2))."),
    **dict.fromkeys(
        ("try_convert", "safe_cast", "try_parse", "parse"), "Write TRY_CAST(x AS DATE)."
    ),
    **dict.fromkeys(("nvl", "isnull", "zeroifnull"), _FILLED),
    "convert": "Write CAST(x AS VARCHAR), or strftime(x, '%d/%m/%Y').",
    "nvl2": "Write CASE WHEN x IS NULL THEN b ELSE a END.",
    "nullifzero": "Write nullif(x, 0).",
    **dict.fromkeys(("iif", "choose"), _CHOICE),
    **dict.fromkeys(("safe_divide", "div0", "try_divide"), _NOT_ZERO),
    **dict.fromkeys(("charindex", "patindex", "locate", "find_in_set"), _POSITION),
    **dict.fromkeys(("wm_concat", "xmlagg"), _JOINED),
    **dict.fromkeys(("top", "rownum"), "Write LIMIT 10 at the end of the query."),
    "stuff": "Write overlay(x PLACING 'new' FROM 1 FOR 2).",
    "replicate": "Write repeat(x, 3).",
    "space": "Write repeat(' ', 3).",
    "datalength": "Write strlen(x).",
    "approx_count_distinct": "Write count(DISTINCT x).",
    "regexp_like": "Write regexp_matches(x, 'pattern').",
    "rlike": "Write regexp_matches(x, 'pattern').",
    "regexp_substr": "Write regexp_extract(x, 'pattern').",
    "datename": "Write strftime(x, '%A').",
    "ratio_to_report": "Write decimal_division(x, sum(x) OVER (), 9).",
}
"""A function in lower case, and what to write instead."""

UNITS_FIRST = frozenset(
    {
        *("date_diff", "datediff", "date_add", "dateadd", "date_part", "datepart", "date_sub"),
        *("date_trunc", "datetrunc", "datesub"),
    }
)
"""Functions whose first argument is the name of a unit, as a text."""
UNITS = frozenset(
    {
        *("day", "week", "month", "quarter", "year", "hour", "minute", "second", "dayofweek"),
        *("dd", "d", "mm", "m", "yy", "yyyy", "hh", "mi", "ss", "wk", "qq", "dow", "doy"),
    }
)


def instead(name: str) -> str:
    """A way out for a function of another engine; "" for any other name."""
    if name.lower() in CLOCKS:
        return (
            "Write the date as a literal, such as DATE '2026-06-30', or current_date where a "
            "question's as_of (--as-of) sets the clock."
        )
    return INSTEAD.get(name.lower(), "")
