"""What the engine's functions do to the literals and rows below them: closed lists, and why."""

from __future__ import annotations

PARAMETERS: dict[str, int] = {
    **dict.fromkeys(["round", "round_even", "roundbankers", "trunc"], 1),
    "decimal_division": 2,
    **dict.fromkeys(["date_trunc", "datetrunc", "date_part", "datepart"], 0),
    **dict.fromkeys(["date_diff", "datediff", "date_sub", "datesub"], 0),
}
"""Arguments, counted from 0, that steer precision or name a part of a date and are no value."""

UNITS = frozenset({"day", "week", "month", "quarter", "year"})
"""Parts of a date that steer without being a value; a millennium or a microsecond is a number."""
PARTS = UNITS | {"hour", "minute", "second", "dow", "isodow", "doy", "isoyear"}
PART_FUNCTIONS = frozenset({"date_part", "datepart"})

OPERATIONS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "divide",
    "%": "remainder",
    "||": "concat",
    "count_star": "count",
}

ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "abs", "add", "subtract", "multiply"})
DIVISIONS = frozenset({"/", "//", "%", "divide", "fdiv", "mod", "fmod", "decimal_division"})
VALUE_AGGREGATES = frozenset(
    {
        *("sum", "sum_no_overflow", "min", "max", "avg", "mean", "median", "decimal_average"),
        *("any_value", "arbitrary", "first", "last", "mode", "quantile_disc", "fsum", "favg"),
        *("arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "bool_and", "bool_or"),
        *("arg_max_null", "arg_min_null", "arg_max_nulls_last", "arg_min_nulls_last"),
    }
)
"""Aggregates that give back what they were given; all others tell how many rows there were."""
UNTOUCHED_BY_COPIES = VALUE_AGGREGATES - {"sum", "sum_no_overflow", "fsum"}
"""Aggregates that say the same, or nearly so, when a join repeats a row."""
ROW_VALUES = frozenset({"lag", "lead", "first_value", "last_value", "nth_value", "fill"})
COUNTS_OF_TRUTH = frozenset({"count", "count_star", "count_if", "countif", "sum", "regr_count"})

TRANSPARENT = (
    ARITHMETIC
    | DIVISIONS
    | VALUE_AGGREGATES
    | ROW_VALUES
    | COUNTS_OF_TRUTH
    | frozenset(PARAMETERS)
    | {
        *("nullif", "ifnull", "coalesce", "if", "iff", "greatest", "least", "ceil", "ceiling"),
        *("floor", "date_add", "to_days", "to_weeks", "to_months", "to_quarters", "to_years"),
        *("to_hours", "to_minutes", "to_seconds", "year", "month", "day", "quarter", "last_day"),
        *("=", "!=", "<>", "<", "<=", ">", ">=", "row_number", "rank", "dense_rank", "ntile"),
        *("range", "generate_series", "unnest"),
    }
)
"""Functions that neither measure the text of a value nor glue texts together. Under any other, a
literal is no number of the question any more ('4' || '5'), and the digits that a cast asked for
are a value (length(x::DECIMAL(38,30)::VARCHAR))."""

MEASURES = frozenset(
    {
        *("length", "len", "strlen", "char_length", "character_length", "octet_length"),
        *("bit_length", "bit_count", "length_grapheme", "array_length", "json_array_length"),
        *("cardinality", "ord", "ascii", "unicode"),
    }
)
"""Functions that count what a cast or a digest laid out: length(md5(x)) is 32 in every row."""
WIDTHS = frozenset(
    {
        *("md5", "md5_number", "sha1", "sha256", "hex", "to_hex", "bin", "to_binary", "base64"),
        *("to_base64", "to_base", "encode", "strftime", "format", "printf", "lpad", "rpad"),
        *("dayname", "monthname", "json_type", "formatreadablesize", "format_bytes"),
    }
)
"""Functions whose texts have a width of their own; it counts once it is measured."""
FIXED = frozenset(
    {
        *("sign", "signbit", "era", "century", "millennium", "decade"),
        *("timezone_hour", "timezone_minute", "bit_count"),
    }
)
"""Functions with so few answers that they are constants: sign(x) is 1."""
ARITIES = frozenset(
    {"list_value", "list_pack", "array_value", "row", "struct_pack", "map", "json_array"}
)
"""Their length was typed: len([x, x, x]) is 3."""

SQUARES = (
    VALUE_AGGREGATES
    | ARITIES
    | {"*", "multiply", "coalesce", "ifnull", "greatest", "least", "if", "iff", "nullif"}
    | {"||", "concat", "concat_ws", "covar_pop", "covar_samp", "list_concat", "list_cat"}
)
"""Functions that may be given one thing twice. Of any other what comes out is a factor that nobody
typed: x / x, x - x, x | ~x, date_diff('day', d, d), corr(x, x)."""
COPIES = frozenset({"coalesce", "ifnull", "nullif", "greatest", "least", "abs", "~", "+", "-", "@"})
"""Functions whose value is that of their first argument, or its opposite, where no other argument
makes a difference: x / nullif(x, 0), x / greatest(x), x + ~x."""
ONE_GIVEN = frozenset({"greatest", "least", "+", "-"})
"""Those that copy only when they are given one argument."""

TRUTHS = frozenset(
    {
        *("!=", "!~~", "!~~*", "&&", "<", "<=", "<@", "=", ">", ">=", "@>", "^@", "~~", "~~*"),
        *("~~~", "array_contains", "array_has", "array_has_all", "array_has_any", "bool_and"),
        *("bool_or", "contains", "ends_with", "ilike_escape", "isfinite", "isinf", "isnan"),
        *("json_contains", "json_exists", "json_valid", "like_escape", "list_contains"),
        *("list_has", "list_has_all", "list_has_any", "map_contains", "not_ilike_escape"),
        *("not_like_escape", "prefix", "regexp_full_match", "regexp_matches", "starts_with"),
        *("struct_contains", "struct_has", "suffix", "variant_contains", "variant_exists"),
        *("map_contains_entry", "map_contains_value", "list_bool_and", "list_bool_or"),
    }
)
"""Functions that give a truth value; as a number it would be a 1 that nobody typed."""
TRUTH_OPERATORS = frozenset(
    {"OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "COMPARE_IN", "COMPARE_NOT_IN"}
)

RULERS = frozenset(
    {
        *("row_number", "rank", "rank_dense", "dense_rank", "ntile", "cume_dist", "percent_rank"),
        *("list_position", "list_indexof", "array_position", "array_indexof", "grade_up"),
        *("list_grade_up", "array_grade_up", "generate_subscripts", "range", "generate_series"),
        *("unnest", "regexp_split_to_table", "struct_position", "struct_indexof"),
        *("list_filter", "array_filter", "filter"),
    }
)
"""Functions that number rows or places: a literal compared with one picks itself out."""

TEXTS = frozenset(
    {
        *("VARCHAR", "TEXT", "STRING", "CHAR", "BPCHAR", "BLOB", "BYTEA", "VARBINARY", "JSON"),
        *("BIT", "BITSTRING", "LIST", "MAP", "UUID"),
    }
)
"""Types in which the digits of a number can be counted."""
BOOLEANS = frozenset({"BOOLEAN", "BOOL"})
