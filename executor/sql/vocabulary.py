"""The closed lists of the first gate: what may stand in the engine's parse tree."""

from __future__ import annotations

from collections.abc import Mapping

CTES_MAX = 30
CTE_USES_MAX = 4
"""25 queries in WITH that each name the one before twice hang the planner (measured)."""
RANGE_ROWS_MAX = 1_000_000

QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"})
TABLE_REFS = frozenset(
    {"BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SUBQUERY", "TABLE_FUNCTION"}
)
MODIFIERS = frozenset(
    {
        *("ORDER_MODIFIER", "LIMIT_MODIFIER", "DISTINCT_MODIFIER", "LIMIT_PERCENT_MODIFIER"),
        *("ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
    }
)
EXPRESSIONS: Mapping[str, frozenset[str]] = {
    "BETWEEN": frozenset({"COMPARE_BETWEEN", "COMPARE_NOT_BETWEEN"}),
    "CASE": frozenset({"CASE_EXPR"}),
    "CAST": frozenset({"OPERATOR_CAST"}),
    "COLUMN_REF": frozenset({"COLUMN_REF"}),
    "COMPARISON": frozenset(
        {
            *("COMPARE_EQUAL", "COMPARE_NOTEQUAL", "COMPARE_LESSTHAN", "COMPARE_GREATERTHAN"),
            *("COMPARE_LESSTHANOREQUALTO", "COMPARE_GREATERTHANOREQUALTO"),
            *("COMPARE_DISTINCT_FROM", "COMPARE_NOT_DISTINCT_FROM"),
        }
    ),
    "CONJUNCTION": frozenset({"CONJUNCTION_AND", "CONJUNCTION_OR"}),
    "CONSTANT": frozenset({"VALUE_CONSTANT"}),
    "FUNCTION": frozenset({"FUNCTION"}),
    "LAMBDA": frozenset({"LAMBDA"}),
    "OPERATOR": frozenset(
        {
            *("OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL", "OPERATOR_COALESCE"),
            *("OPERATOR_NULLIF", "COMPARE_IN", "COMPARE_NOT_IN", "GROUPING_FUNCTION"),
            *("ARRAY_CONSTRUCTOR", "ARRAY_EXTRACT", "ARRAY_SLICE", "STRUCT_EXTRACT"),
            *("OPERATOR_TRY",),
        }
    ),
    "STAR": frozenset({"STAR"}),
    "SUBQUERY": frozenset({"SUBQUERY"}),
    "TYPE": frozenset({"TYPE"}),
    "WINDOW": frozenset(
        {
            *("WINDOW_AGGREGATE", "WINDOW_ROW_NUMBER", "WINDOW_RANK", "WINDOW_RANK_DENSE"),
            *("WINDOW_NTILE", "WINDOW_PERCENT_RANK", "WINDOW_CUME_DIST", "WINDOW_LEAD"),
            *("WINDOW_FIRST_VALUE", "WINDOW_LAST_VALUE", "WINDOW_NTH_VALUE", "WINDOW_LAG"),
        }
    ),
}
# No STRUCT: the names of its fields would be texts of the model's. No ARRAY: its length would be.
TYPES = frozenset(
    {
        *("BOOLEAN", "BOOL", "TINYINT", "SMALLINT", "INTEGER", "INT", "INT2", "INT4", "INT8"),
        *("BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
        *("INT1", "LONG", "SHORT", "SIGNED", "INT16", "INT32", "INT64", "INT128", "FLOAT4"),
        *("DECIMAL", "NUMERIC", "DEC", "FLOAT", "REAL", "DOUBLE", "FLOAT8", "DATE", "TIME"),
        *("TIMESTAMP", "DATETIME", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "UUID"),
        *("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ", "INTERVAL", "VARCHAR", "TEXT", "STRING"),
        *("CHAR", "BPCHAR", "BLOB", "BYTEA", "VARBINARY", "JSON", "LIST", "MAP"),
        *("BIT", "BITSTRING", "TIMESTAMP_US", "NULL"),
    }
)
CLOCK_WORDS = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
)
SESSION_WORDS = frozenset(
    {"current_user", "session_user", "user", "current_role", "current_schema", "current_catalog"}
)
RANGES = frozenset({"range", "generate_series"})
MAKES_ROWS = frozenset({"unnest", "generate_subscripts", "regexp_split_to_table"})
"""Functions that turn one row of a select list into several."""
ORDERED_GROUPS = frozenset({"order_sensitive"})
AGGREGATES_BY_NAME = frozenset(
    {"sum", "min", "max", "count", "avg", "bool_and", "bool_or", "histogram"}
)
LIST_ORDER_SAFE = frozenset(
    {"list_sort", "array_sort", "list_unique", "len", "length", "array_length"}
)
