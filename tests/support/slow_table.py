"""Canonical form the slow way, value by value in Python: what the fast ways are compared with.

It shares no code with artifacts/table.py and what that calls; docs/FORMAT.md §3 and §5 read
literally.
"""

import json
import math

import pyarrow as pa


def stream_of(schema, rows, *, key=(), ordered=False, run_rows=65_536):
    """The canonical bytes of rows (tuples of Python values); schema: canonical Arrow types."""
    rows = [tuple(normal(value) for value in row) for row in rows]
    if not ordered:
        by = [schema.get_field_index(name) for name in key] or range(len(schema))
        rows.sort(key=lambda row: [rank(row[index]) for index in by])
    note = json.dumps({"format": "tieout.table/1", "key": list(key)}, sort_keys=True)
    plain = schema.with_metadata({"tieout.table": note.replace('": ', '":').replace(", ", ",")})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain) as out:
        for start in range(0, len(rows), run_rows):
            run = rows[start : start + run_rows]
            arrays = [
                pa.array([row[index] for row in run], type=field.type)
                for index, field in enumerate(plain)
            ]
            out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
    return sink.getvalue().to_pybytes()


def totals_of(schema, rows):
    """Name and exact sum, as text, of each integer or DECIMAL column."""
    totals = []
    for index, field in enumerate(schema):
        values = [row[index] for row in rows if row[index] is not None]
        if pa.types.is_integer(field.type):
            totals.append((field.name, str(sum(values))))
        if pa.types.is_decimal(field.type):
            scale = field.type.scale
            units = sum(round_trip(value, scale) for value in values)
            digits = str(abs(units)).zfill(scale + 1)
            whole = digits[:-scale] + "." + digits[-scale:] if scale else digits
            totals.append((field.name, ("-" if units < 0 else "") + whole))
    return totals


def round_trip(value, scale):
    sign, digits, exponent = value.as_tuple()
    units = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -units if sign else units


def normal(value):
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value if value else 0.0
    return value


def rank(value):
    """Ascending, NaN after all numbers, null after all; text by its UTF-8 bytes."""
    if value is None:
        return (2, 0)
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    if isinstance(value, str):
        return (0, value.encode())
    return (0, value)
