"""The closed lists of the second gate: sqlglot's node classes with the arguments each may have."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.parsers.duckdb import DuckDBParser

SPELLED = frozenset({"CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "OVERLAY"})
"""Calls with a grammar of their own inside the brackets; all others are a name and arguments."""


class AsWritten(DuckDB):
    """DuckDB's dialect, in which each call keeps the name that was written.

    sqlglot gives many names one class (LIST, ARRAY_AGG); the policy is about the names themselves.
    """

    class Parser(DuckDBParser):
        """Without the tables that turn names into classes."""

        FUNCTIONS = {}  # noqa: RUF012
        # Else list(x)[1] becomes the list [1], and what stood in the brackets before is lost.
        ARRAY_CONSTRUCTORS = {}  # noqa: RUF012
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: parser
            for name, parser in DuckDBParser.FUNCTION_PARSERS.items()
            if name in SPELLED
        }


_ONE = frozenset({"this"})
_TWO = frozenset({"this", "expression"})
_LIST = frozenset({"expressions"})
_TAIL = frozenset({"with_", "order", "limit", "offset"})
_BINARY = (
    *(exp.Add, exp.And, exp.BitwiseAnd, exp.BitwiseLeftShift, exp.BitwiseOr, exp.BitwiseRightShift),
    *(exp.Distance, exp.Div, exp.EQ, exp.GT, exp.GTE, exp.Glob, exp.ILike, exp.IntDiv, exp.Is),
    *(exp.LT, exp.LTE, exp.Like, exp.Mod, exp.Mul, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Or, exp.Pow, exp.SimilarTo, exp.Sub, exp.JSONExtract, exp.JSONExtractScalar, exp.Escape),
    *(exp.Filter, exp.WithinGroup, exp.Slice, exp.PropertyEQ, exp.RegexpLike, exp.Extract),
    *(exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps, exp.StartsWith),
)
_UNARY = (
    *(exp.All, exp.Any, exp.BitwiseNot, exp.Boolean, exp.ByteString, exp.DataTypeParam, exp.Exists),
    *(exp.From, exp.Having, exp.IgnoreNulls, exp.Literal, exp.Neg, exp.Not, exp.Paren, exp.Qualify),
    *(exp.RawString, exp.RespectNulls, exp.ToMap, exp.Var, exp.Where, exp.Abs, exp.JSONPathKey),
    *(exp.JSONPathSubscript, exp.Null, exp.JSONPathRoot, exp.JSONPathWildcard),
)
_LISTS = (exp.Array, exp.Cube, exp.GroupingSets, exp.JSONPath, exp.Rollup, exp.Struct, exp.Tuple)

NODES: Mapping[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(_BINARY, _TWO),
    **dict.fromkeys(_UNARY, _ONE),
    **dict.fromkeys(_LISTS, _LIST),
    **dict.fromkeys((exp.Except, exp.Intersect, exp.Union), _TWO | _TAIL | {"distinct", "by_name"}),
    exp.Like: _TWO | {"negate"},
    exp.ILike: _TWO | {"negate"},
    exp.Literal: _ONE | {"is_string"},
    exp.Identifier: _ONE | {"quoted"},
    exp.DPipe: _TWO | {"safe"},
    exp.JSONExtract: _TWO | {"only_json_types"},
    exp.JSONExtractScalar: _TWO | {"only_json_types", "scalar_only"},
    exp.Alias: _ONE | {"alias"},
    exp.Anonymous: _ONE | _LIST,
    exp.AtTimeZone: _ONE | {"zone"},
    exp.Between: _ONE | {"low", "high", "symmetric"},
    exp.Bracket: _ONE | _LIST | {"offset", "safe", "returns_list_for_maps"},
    exp.CTE: _ONE | {"alias", "materialized"},
    exp.Case: _ONE | {"ifs", "default"},
    exp.Cast: _ONE | {"to"},
    exp.TryCast: _ONE | {"to", "safe"},
    exp.Column: _ONE | {"table", "db", "catalog"},
    exp.Dot: _TWO,
    exp.Comprehension: _TWO | {"iterator", "condition", "position"},
    exp.DataType: _ONE | _LIST | {"nested"},
    exp.Distinct: _LIST | {"on"},
    exp.Fetch: frozenset({"count", "direction", "limit_options"}),
    exp.Group: _LIST | {"all", "cube", "rollup", "grouping_sets"},
    exp.If: _ONE | {"true", "false"},
    exp.In: _ONE | _LIST | {"query", "field", "unnest"},
    exp.Interval: _ONE | {"unit"},
    exp.Join: _ONE | {"on", "using", "kind", "side", "method"},
    exp.Lambda: _ONE | _LIST,
    exp.Lateral: _ONE | {"alias"},
    exp.Limit: _TWO | {"limit_options", "offset"},
    exp.LimitOptions: frozenset({"percent", "rows"}),
    exp.Map: frozenset({"keys", "values"}),
    exp.Offset: _TWO,
    exp.Order: _ONE | _LIST,
    exp.Ordered: _ONE | {"desc", "nulls_first"},
    exp.Overlay: _TWO | {"from_", "for_"},
    exp.Pivot: _ONE
    | _LIST
    | {"fields", "using", "group", "alias", "columns", "pivot_column_naming"},
    exp.Select: _LIST
    | _TAIL
    | {"distinct", "from_", "joins", "where", "group", "having", "qualify", "windows"},
    exp.Star: frozenset({"except_", "rename", "replace"}),
    exp.StrPosition: _ONE | {"substr"},
    exp.Subquery: _ONE | _TAIL | {"alias", "joins", "pivots"},
    exp.Substring: _ONE | {"start", "length"},
    exp.Table: _ONE | {"alias", "db", "catalog", "joins", "pivots"},
    exp.TableAlias: _ONE | {"columns"},
    exp.Trim: _TWO | {"position"},
    exp.Unnest: _LIST | {"alias"},
    exp.Values: _LIST | {"alias"} | _TAIL,
    exp.Window: _ONE | {"partition_by", "order", "spec", "over", "alias"},
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side", "exclude"}),
    exp.With: _LIST | {"recursive"},
}
"""What is not here is refused: a class that is absent, and an argument that a class must not have.

Absent on purpose: TableSample, Version (AT), PositionalColumn (#1), Placeholder, Parameter,
Collate, Operator, HexString, UNPIVOT (an argument of Pivot), all that writes.
"""

TYPES = frozenset(
    {
        *(exp.DType.BOOLEAN, exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT),
        *(exp.DType.BIGINT, exp.DType.INT128, exp.DType.UTINYINT, exp.DType.USMALLINT),
        *(exp.DType.UINT, exp.DType.UBIGINT, exp.DType.UINT128, exp.DType.FLOAT),
        *(exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.DATE, exp.DType.TIME),
        *(exp.DType.TIMESTAMP, exp.DType.DATETIME, exp.DType.TIMESTAMP_S),
        *(exp.DType.TIMESTAMP_MS, exp.DType.TIMESTAMP_NS, exp.DType.TIMESTAMPTZ),
        *(exp.DType.TIMESTAMPNTZ, exp.DType.UUID, exp.DType.INTERVAL, exp.DType.VARCHAR),
        *(exp.DType.TEXT, exp.DType.CHAR, exp.DType.BPCHAR, exp.DType.VARBINARY),
        *(exp.DType.JSON, exp.DType.ARRAY, exp.DType.LIST, exp.DType.MAP, exp.DType.BIT),
        exp.DType.NULL,
    }
)

REFUSED: Mapping[type[exp.Expr], str] = {
    exp.Delete: "sql.write",
    exp.Update: "sql.write",
    exp.Insert: "sql.write",
    exp.Merge: "sql.write",
    exp.Create: "sql.write",
    exp.Drop: "sql.write",
    exp.Alter: "sql.write",
    exp.TruncateTable: "sql.write",
    exp.Into: "sql.write",
    exp.Copy: "sql.file_access",
    exp.Attach: "sql.file_access",
    exp.Detach: "sql.file_access",
    exp.Install: "sql.file_access",
    exp.Command: "sql.not_a_query",
    exp.Describe: "sql.not_a_query",
    exp.Summarize: "sql.not_a_query",
    exp.Show: "sql.not_a_query",
    exp.Set: "sql.setting",
    exp.Pragma: "sql.setting",
    exp.Use: "sql.setting",
    exp.Placeholder: "sql.parameter",
    exp.Parameter: "sql.parameter",
    exp.SessionParameter: "sql.parameter",
    exp.TableSample: "sql.sample",
    exp.Version: "sql.sample",
    exp.Collate: "sql.collation",
    exp.CurrentDate: "sql.clock",
    exp.CurrentTime: "sql.clock",
    exp.CurrentTimestamp: "sql.clock",
    exp.Localtime: "sql.clock",
    exp.Localtimestamp: "sql.clock",
    exp.CurrentUser: "sql.catalog",
    exp.CurrentRole: "sql.catalog",
    exp.CurrentCatalog: "sql.catalog",
    exp.SessionUser: "sql.catalog",
}
"""The code of a class that is absent above; every other one is sql.construct."""

CLOCK_WORDS = frozenset(
    {"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}
)
SESSION_WORDS = frozenset(
    {"current_catalog", "current_role", "current_schema", "current_user", "session_user", "user"}
)
RANGES = frozenset({"generate_series", "range"})
AGGREGATES_BY_NAME = frozenset(
    {"avg", "bool_and", "bool_or", "count", "histogram", "max", "min", "sum"}
)
"""The four above are the first gate's too (vocabulary.py), and written again here on purpose."""
NAMES_AGGREGATE = frozenset(
    {"aggregate", "array_aggr", "array_aggregate", "list_aggr", "list_aggregate"}
)
"""Functions whose second argument names an aggregate."""
CLOCK_WITH_ONE = frozenset({"age"})
"""Functions of two moments that take the clock for the one that is left out."""


def _admitted() -> frozenset[str]:
    listed = files(__package__).joinpath("second_functions.txt").read_text("utf-8").splitlines()
    return frozenset(name for name in listed if not name.startswith("# "))


ADMITTED = _admitted()
"""The names of functions that a text may have, in lower case: this gate's own list.

Read when this module is loaded: a child in its sandbox opens no file.
"""

CALL_CODES = {
    **dict.fromkeys(("now", "today", "transaction_timestamp", "ago"), "sql.clock"),
    **dict.fromkeys(("get_current_time", "get_current_timestamp"), "sql.clock"),
    **dict.fromkeys(("random", "setseed", "gen_random_uuid"), "sql.random"),
    **dict.fromkeys(("uuid", "uuidv4", "uuidv7"), "sql.random"),
}
"""The code of a name that is not admitted; every other one is sql.function."""

ARGUMENT_CODES = {
    "into": "sql.write",
    "sample": "sql.sample",
    "version": "sql.sample",
    "when": "sql.sample",
    "unpivot": "sql.function",
}
"""The code of an argument that its class must not have; every other one is sql.construct."""

MADE_BY: Mapping[str, tuple[type[exp.Expr], ...]] = {
    **dict.fromkeys(("list_apply", "list_filter", "struct_extract"), (exp.Comprehension,)),
    **dict.fromkeys(
        ("to_years", "to_months", "to_days", "to_hours", "to_minutes"), (exp.Interval,)
    ),
    **dict.fromkeys(("to_seconds", "to_weeks", "to_milliseconds", "trunc"), (exp.Interval,)),
    **dict.fromkeys(("to_microseconds", "to_quarters", "to_decades"), (exp.Interval,)),
    **dict.fromkeys(("to_centuries", "to_millennia"), (exp.Interval,)),
    **dict.fromkeys(("like_escape", "not_like_escape"), (exp.Escape,)),
    **dict.fromkeys(("ilike_escape", "not_ilike_escape"), (exp.Escape,)),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), (exp.Trim,)),
    "map": (exp.Map, exp.ToMap),
    "list_value": (exp.Array, exp.ToMap),
    "if": (exp.If,),
    "contains": (exp.In,),
    "date_part": (exp.Extract,),
    "overlay": (exp.Overlay,),
    "position": (exp.StrPosition,),
    "regexp_full_match": (exp.SimilarTo,),
    "regexp_matches": (exp.RegexpLike,),
    "row": (exp.Tuple, exp.Lambda),
    "struct_pack": (exp.Struct, exp.Comprehension),
    "substring": (exp.Substring,),
    "timezone": (exp.AtTimeZone,),
    "unnest": (exp.Unnest,),
}
"""Functions of the engine's tree that nobody wrote, by the syntax that makes them."""

WRITTEN_FOR = {
    "count_star": "count",
    "first_value": "first",
    "last_value": "last",
    "list_filter": "columns",
    "quantile_cont": "percentile_cont",
    "quantile_disc": "percentile_disc",
}
"""Functions of the engine's tree that are written with another name."""

SYNTAX_CALLS = frozenset(
    {
        *("coalesce", "columns", "grouping", "grouping_id", "ifnull", "try", "construct_array"),
        *("percentile_cont", "percentile_disc"),
    }
)
"""Written like a call and read as a construct by the engine: they are no functions of its own."""
