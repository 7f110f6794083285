-- Queries over t(id key), u(k key) and n(no key); data.py makes the tables.
-- Before each: id | class of dependence | what the gate does | reasons that its verdict names.

-- agg-01 | aggregate | function |
SELECT count(*) AS n, count(amt) AS m, count(DISTINCT acct) AS d FROM t
-- agg-02 | aggregate | function |
SELECT grp, sum(amt) AS s, min(amt) AS lo, max(amt) AS hi FROM t GROUP BY grp
-- agg-03 | aggregate | function |
SELECT acct, memo, sum(qty) AS q, count(*) FILTER (WHERE flag) AS f FROM t GROUP BY acct, memo
-- agg-04 | aggregate | function |
SELECT bool_and(flag) AS a, bool_or(flag) AS o, bit_xor(qty) AS x, bit_or(qty) AS y FROM t
-- agg-05 | aggregate | function |
SELECT grp, sum(DISTINCT amt) AS s, count(DISTINCT memo) AS n FROM t GROUP BY grp HAVING count(*) > 10
-- agg-06 | aggregate | function |
SELECT count_if(qty > 3) AS c, sum(CASE WHEN flag THEN amt ELSE 0 END) AS s FROM t
-- agg-07 | aggregate | function |
SELECT min(x) AS lo, max(x) AS hi, min(memo) AS m, max(ts) AS l FROM t
-- agg-08 | aggregate | function |
SELECT grp, quantile_disc(amt, 0.5) AS q, quantile_disc(amt, 0.9) AS r FROM t GROUP BY grp
-- agg-09 | aggregate | function |
SELECT sum(n) AS n FROM (SELECT acct, count(*) AS n FROM t GROUP BY ALL) s
-- agg-10 | aggregate | function |
SELECT max(w) AS hi, min(w) AS lo, count(w) AS n FROM t

-- dec-01 | decimal | function |
SELECT grp, sum(amt * rate) AS s FROM t JOIN u USING (acct) GROUP BY grp
-- dec-02 | decimal | function |
SELECT id, round(amt * 0.19, 2) AS tax, amt - round(amt, 0) AS cents FROM t
-- dec-03 | decimal | function |
SELECT acct, sum(CAST(x AS DECIMAL(38, 9))) AS s FROM t GROUP BY acct
-- dec-04 | decimal | function |
SELECT grp, decimal_average(amt) AS a FROM t GROUP BY grp
-- dec-05 | decimal | function |
SELECT id, decimal_division(amt, CAST(7 AS DECIMAL(9, 0)), 6) AS q FROM t
-- dec-06 | decimal | function |
SELECT grp, sum(abs(amt)) AS s, sum(sign(amt)) AS g, sum(amt % 7) AS r FROM t GROUP BY grp

-- int-01 | integer | function |
SELECT grp, sum(qty) AS s, sum(qty * qty) AS q FROM t GROUP BY grp
-- int-02 | integer | function |
SELECT grp, sum(qty // 3) AS d, sum(qty % 3) AS r, sum(qty & 3) AS b FROM t GROUP BY grp
-- int-03 | integer | function |
SELECT id, CAST(amt AS INTEGER) AS i, CAST(x AS BIGINT) AS j FROM t WHERE abs(x) < 1000000
-- int-04 | average | rewritten | inexact_average
SELECT grp, avg(qty) AS a FROM t GROUP BY grp
-- int-05 | division | rewritten | inexact_division
SELECT id, qty / 3 AS q FROM t
-- int-06 | division | rewritten | inexact_division
SELECT grp, count(*) FILTER (WHERE flag) / count(*) AS share FROM t GROUP BY grp

-- avg-01 | average | rewritten | inexact_average
SELECT grp, avg(amt) AS a FROM t GROUP BY grp
-- avg-02 | average | rewritten | inexact_average
SELECT avg(amt) FILTER (WHERE flag) AS a, avg(DISTINCT amt) AS b FROM t
-- avg-03 | average | rewritten | inexact_average
SELECT id, avg(amt) OVER (PARTITION BY grp) AS a FROM t
-- avg-04 | average | rewritten | float_accumulation
SELECT grp, avg(x) AS a FROM t GROUP BY grp
-- avg-05 | average | rewritten | inexact_average
SELECT acct, mean(rate) AS a FROM u GROUP BY acct

-- div-01 | division | rewritten | inexact_division
SELECT id, amt / 3 AS q FROM t
-- div-02 | division | rewritten | inexact_division
SELECT acct, sum(amt) / nullif(sum(qty), 0) AS q FROM t GROUP BY acct
-- div-03 | division | rewritten | inexact_division
SELECT id, (amt - 1.00) / (amt * amt + 1.00) AS q FROM t WHERE abs(amt) < 100000
-- div-04 | division | rewritten | inexact_division
SELECT acct, sum(amt) / count(*) AS q FROM t GROUP BY acct HAVING count(*) > 3
-- div-05 | division | function |
SELECT id, x / 3 AS q, x * 0.1 AS r FROM t

-- flt-01 | float sum | rewritten | float_accumulation
SELECT sum(x) AS s FROM t
-- flt-02 | float sum | rewritten | float_accumulation
SELECT grp, sum(x) AS s FROM t GROUP BY grp
-- flt-03 | float sum | rewritten | float_accumulation
SELECT sum(x) FILTER (WHERE flag) AS s, sum(x * 2) AS d FROM t
-- flt-04 | float sum | rewritten | float_accumulation
SELECT grp, sum(w) AS s FROM t GROUP BY grp
-- flt-05 | float sum | rewritten | float_accumulation
SELECT b, sum(z) AS s FROM n GROUP BY b
-- flt-06 | float sum | function |
SELECT grp, sum(x ORDER BY x) AS s FROM t GROUP BY grp
-- flt-07 | float sum | rewritten | float_accumulation
SELECT id, sum(x) OVER (PARTITION BY grp) AS s FROM t
-- flt-08 | float sum | rewritten | float_accumulation
SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) AS s FROM t
-- flt-09 | float sum | rewritten | float_accumulation
SELECT sum(s) AS s FROM (SELECT grp, sum(x) AS s FROM t GROUP BY grp) q
-- flt-10 | float sum | refused | float_accumulation
SELECT grp, list_sum(list(x ORDER BY id)) AS s FROM t GROUP BY grp
-- flt-11 | float sum | function |
SELECT id, x + w AS s, x * w AS p, CAST(x AS DECIMAL(38, 6)) AS c FROM t WHERE isfinite(w)
-- var-01 | float statistics | rewritten | float_accumulation
SELECT grp, stddev(x) AS s FROM t GROUP BY grp
-- var-02 | float statistics | rewritten | float_accumulation
SELECT stddev_pop(amt) AS s, var_samp(amt) AS v FROM t
-- var-03 | float statistics | rewritten | float_accumulation
SELECT var_pop(x) AS v, sem(x) AS e FROM t
-- var-04 | float statistics | rewritten | float_accumulation
SELECT corr(x, qty) AS c FROM t
-- var-05 | float statistics | rewritten | float_accumulation
SELECT grp, covar_pop(x, amt) AS c FROM t GROUP BY grp
-- var-06 | float statistics | rewritten | float_accumulation
SELECT regr_slope(x, qty) AS s, regr_intercept(x, qty) AS i FROM t
-- var-07 | float statistics | rewritten | float_accumulation
SELECT product(1 + x / 10000000000000000) AS p FROM t
-- var-08 | float statistics | rewritten | float_accumulation
SELECT fsum(x) AS s, favg(x) AS a FROM t
-- var-09 | float statistics | rewritten | float_accumulation
SELECT skewness(x) AS s, kurtosis(x) AS k FROM t
-- var-10 | float statistics | function |
SELECT grp, median(x) AS m, quantile_cont(x, 0.25) AS q FROM t GROUP BY grp

-- grp-01 | group without order | function |
SELECT memo, count(*) AS n FROM t GROUP BY memo
-- grp-02 | group without order | function |
SELECT DISTINCT memo, grp FROM t
-- grp-03 | group without order | function |
SELECT acct, grp, sum(amt) AS s FROM t GROUP BY GROUPING SETS ((acct), (grp), ())
-- grp-04 | group without order | function |
SELECT acct, grp, sum(amt) AS s, grouping(acct) AS g FROM t GROUP BY ROLLUP (acct, grp)
-- grp-05 | group without order | function |
SELECT flag, grp, count(*) AS n FROM t GROUP BY CUBE (flag, grp)

-- seq-01 | sequence | function | sequence
SELECT id, memo, amt FROM t ORDER BY memo
-- seq-02 | sequence | function | sequence
SELECT memo, count(*) AS n FROM t GROUP BY memo ORDER BY n DESC
-- seq-03 | sequence | function |
SELECT id, memo FROM t ORDER BY memo, id
-- seq-04 | sequence | function |
SELECT a, b FROM n ORDER BY ALL
-- seq-05 | sequence | function | sequence
SELECT a AS p, c FROM n UNION ALL SELECT qty, amt FROM t ORDER BY p
-- seq-06 | sequence | function | sequence
SELECT memo AS m FROM t ORDER BY amt DESC NULLS FIRST

-- join-01 | join | function |
SELECT t.id, u.k, t.amt FROM t JOIN u ON t.acct = u.acct
-- join-02 | join | function |
SELECT t.id, u.rate FROM t LEFT JOIN u ON t.acct = u.acct AND u.k < 50
-- join-03 | join | function |
SELECT count(*) AS n, sum(rate) AS s FROM t RIGHT JOIN u USING (acct)
-- join-04 | join | function |
SELECT u.k, n.a, n.b FROM u FULL JOIN n ON u.k = n.a
-- join-05 | join | function |
SELECT id FROM t SEMI JOIN u ON t.acct = u.acct
-- join-06 | join | function |
SELECT id FROM t ANTI JOIN u ON t.acct = u.acct AND t.dt = u.dt
-- join-07 | join | function |
SELECT u.k, v.k AS j FROM u CROSS JOIN u AS v WHERE u.k < 20 AND v.k < 20
-- join-08 | join | function |
SELECT u.k, v.k AS j FROM u JOIN u AS v ON u.rate < v.rate AND u.k < 30
-- join-09 | join | function |
SELECT id FROM t WHERE acct IN (SELECT acct FROM u WHERE rate > 0.5)
-- join-10 | join | refused | layout
SELECT t.id, u.k FROM t POSITIONAL JOIN u
-- join-11 | join | function |
SELECT k, count(*) AS n FROM u NATURAL JOIN (SELECT DISTINCT acct FROM t) s GROUP BY k

-- set-01 | set operation | function |
SELECT acct FROM t UNION SELECT acct FROM u
-- set-02 | set operation | function |
SELECT acct, grp FROM t UNION ALL SELECT b, a FROM n
-- set-03 | set operation | function |
SELECT a FROM n EXCEPT SELECT grp FROM t
-- set-04 | set operation | function |
SELECT a, b FROM n INTERSECT SELECT grp, memo FROM t
-- set-05 | set operation | function |
SELECT a, b FROM n EXCEPT ALL SELECT grp, memo FROM t
-- set-06 | set operation | function |
SELECT b FROM n INTERSECT ALL SELECT memo FROM t
-- set-07 | set operation | function |
SELECT grp AS g, amt AS v FROM t UNION ALL BY NAME SELECT c AS v, a AS g FROM n

-- lim-01 | limit | rewritten | unordered_limit
SELECT id, amt FROM t LIMIT 20
-- lim-02 | limit | rewritten | limit_ties
SELECT id, memo FROM t ORDER BY memo LIMIT 20
-- lim-03 | limit | function |
SELECT id, memo FROM t ORDER BY memo, id LIMIT 20
-- lim-04 | limit | rewritten | unordered_limit
SELECT id FROM t OFFSET 9900
-- lim-05 | limit | rewritten | unordered_limit
SELECT sum(amt) AS s FROM (SELECT amt FROM t LIMIT 100) q
-- lim-06 | limit | rewritten | limit_ties
SELECT sum(qty) AS s FROM (SELECT qty, amt, memo FROM t ORDER BY memo LIMIT 100) q
-- lim-07 | limit | rewritten | unordered_limit
WITH q AS (SELECT id, memo FROM t LIMIT 50) SELECT memo, count(*) AS n FROM q GROUP BY memo
-- lim-08 | limit | rewritten | unordered_limit
SELECT k, (SELECT t.id FROM t WHERE t.acct = u.acct LIMIT 1) AS first_id FROM u
-- lim-09 | limit | rewritten | unordered_limit
(SELECT id FROM t LIMIT 5) UNION ALL (SELECT k FROM u ORDER BY k LIMIT 5)
-- lim-10 | limit | function |
SELECT max(amt) AS m FROM t LIMIT 1
-- lim-11 | limit | refused | unordered_limit
SELECT id FROM t LIMIT 1 PERCENT
-- lim-12 | limit | function |
SELECT amt FROM (SELECT amt FROM t ORDER BY amt LIMIT 100) q
-- lim-13 | limit | rewritten | unordered_limit
SELECT count(*) AS n FROM u WHERE acct IN (SELECT acct FROM t LIMIT 10)
-- lim-14 | limit | rewritten | limit_ties
SELECT memo, count(*) AS n FROM t GROUP BY memo ORDER BY n LIMIT 3
-- lim-15 | limit | function |
SELECT memo FROM t ORDER BY memo LIMIT 30
-- lim-16 | limit | rewritten | limit_ties
SELECT id, memo FROM t ORDER BY memo OFFSET 9000
-- don-01 | distinct on | rewritten | unordered_limit
SELECT DISTINCT ON (acct) acct, id, amt FROM t
-- don-02 | distinct on | rewritten | limit_ties
SELECT DISTINCT ON (acct) acct, id, amt FROM t ORDER BY acct, dt
-- don-03 | distinct on | function |
SELECT DISTINCT ON (acct) acct, id, amt FROM t ORDER BY acct, dt, id
-- don-04 | distinct on | rewritten | unordered_limit
SELECT sum(amt) AS s FROM (SELECT DISTINCT ON (memo) memo, amt FROM t) q

-- win-01 | window | function |
SELECT id, row_number() OVER (ORDER BY amt, id) AS r FROM t
-- win-02 | window | function |
SELECT id, rank() OVER (ORDER BY memo) AS r, dense_rank() OVER (ORDER BY memo) AS d FROM t
-- win-03 | window | function |
SELECT id, sum(amt) OVER (PARTITION BY grp ORDER BY dt) AS s FROM t
-- win-04 | window | function |
SELECT id, lag(amt) OVER (PARTITION BY acct ORDER BY dt, id) AS p FROM t
-- win-05 | window | function |
SELECT id, percent_rank() OVER (ORDER BY qty) AS p, cume_dist() OVER (ORDER BY qty) AS c FROM t
-- win-06 | window | function |
SELECT id, sum(amt) OVER (ORDER BY dt RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND CURRENT ROW) AS s FROM t
-- win-07 | window | function |
SELECT id, count(*) OVER (PARTITION BY acct) AS n, max(amt) OVER () AS m FROM t
-- win-08 | window ties | rewritten | window_ties
SELECT id, row_number() OVER (ORDER BY memo) AS r FROM t
-- win-09 | window ties | rewritten | window_ties
SELECT id, lag(amt) OVER (PARTITION BY acct ORDER BY dt) AS p FROM t
-- win-10 | window ties | rewritten | window_ties
SELECT id, first_value(amt) OVER (PARTITION BY grp ORDER BY dt) AS f FROM t
-- win-11 | window ties | rewritten | window_ties
SELECT id, sum(amt) OVER (ORDER BY dt ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM t
-- win-12 | window ties | rewritten | window_ties
SELECT id, ntile(7) OVER (ORDER BY qty) AS b FROM t
-- win-13 | window order | rewritten | unordered_window
SELECT id, row_number() OVER () AS r FROM t
-- win-14 | window order | rewritten | unordered_window
SELECT id, lead(memo) OVER (PARTITION BY grp) AS p FROM t
-- win-15 | window ties | rewritten | window_ties
SELECT id, acct FROM t QUALIFY row_number() OVER (PARTITION BY acct ORDER BY dt DESC) = 1
-- win-16 | window ties | rewritten | window_ties
SELECT id, last_value(qty) OVER q AS l, nth_value(qty, 2) OVER q AS s FROM t WINDOW q AS (PARTITION BY acct ORDER BY dt)
-- win-17 | window order | rewritten | unordered_window
SELECT a, b, row_number() OVER (PARTITION BY b) AS r FROM n
-- win-18 | window | function |
SELECT id, sum(amt) OVER (ORDER BY dt GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t
-- win-19 | window | function |
SELECT id, sum(amt) OVER (ORDER BY dt RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES) AS s FROM t
-- win-20 | window ties | rewritten | window_ties
SELECT grp, row_number() OVER (ORDER BY count(*)) AS r FROM t GROUP BY grp
-- win-21 | window | function |
SELECT grp, rank() OVER (ORDER BY sum(amt) DESC) AS r FROM t GROUP BY grp

-- ord-01 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, first(memo) AS f, last(memo) AS l FROM t GROUP BY grp
-- ord-02 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, any_value(id) AS v FROM t GROUP BY grp
-- ord-03 | ordered aggregate | function |
SELECT grp, first(memo ORDER BY id) AS f FROM t GROUP BY grp
-- ord-04 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, arg_max(id, dt) AS i, arg_min(memo, dt) AS m FROM t GROUP BY grp
-- ord-05 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, arg_max(memo, id) AS m FROM t GROUP BY grp
-- ord-06 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, mode(qty) AS m FROM t GROUP BY grp
-- ord-07 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, length(string_agg(memo, ',')) AS n, md5(string_agg(memo, ',')) AS h FROM t GROUP BY grp
-- ord-08 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, string_agg(memo, ',') AS s FROM t GROUP BY grp
-- ord-09 | ordered aggregate | function |
SELECT grp, string_agg(memo, ',' ORDER BY memo) AS s FROM t GROUP BY grp
-- ord-10 | ordered aggregate | rewritten | aggregate_ties
SELECT grp, string_agg(memo, ',' ORDER BY dt) AS s FROM t GROUP BY grp
-- ord-11 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, string_agg(DISTINCT memo, ',') AS s FROM t GROUP BY grp
-- ord-12 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, list(qty)[1] AS f, len(list(qty)) AS n FROM t GROUP BY grp
-- ord-13 | ordered aggregate | rewritten | unordered_aggregate
SELECT grp, array_to_string(array_agg(memo), '/') AS s FROM t GROUP BY grp
-- Refused, not put in order: it turns names of columns into values, and takes no ORDER BY inside.
-- ord-14 | ordered aggregate | refused | unordered_aggregate
SELECT acct, json_group_array(qty) AS j FROM t GROUP BY acct
-- ord-15 | ordered aggregate | function |
SELECT map_values(histogram(flag))[1] AS h FROM t
-- ord-16 | ordered aggregate | rewritten | aggregate_ties
SELECT acct, list(memo ORDER BY dt DESC)[1] AS latest FROM t GROUP BY acct
-- ord-17 | ordered aggregate | rewritten | unordered_aggregate
SELECT first(amt) AS f FROM t
-- ord-18 | ordered aggregate | rewritten | unordered_aggregate
SELECT max_by(memo, amt) AS m, min_by(memo, qty) AS n FROM t
-- ord-19 | ordered aggregate | rewritten | unordered_aggregate
SELECT acct, group_concat(qty) AS s FROM t GROUP BY acct
-- ord-20 | ordered aggregate | rewritten | unordered_aggregate
SELECT acct, any_value(memo) FILTER (WHERE flag) AS v FROM t GROUP BY acct

-- apx-01 | approximate | refused | approximate
SELECT approx_count_distinct(acct) AS n FROM t
-- apx-02 | approximate | refused | approximate
SELECT approx_quantile(x, 0.5) AS q FROM t
-- apx-03 | approximate | refused | approximate
SELECT reservoir_quantile(x, 0.5) AS q FROM t
-- apx-04 | approximate | refused | approximate
SELECT approx_top_k(memo, 3)[1] AS m FROM t

-- lib-01 | libm | refused | processor
SELECT id, ln(abs(x) + 1) AS l FROM t
-- lib-02 | libm | refused | processor
SELECT id, exp(CAST(id AS DOUBLE) / 1000) AS e FROM t
-- lib-03 | libm | refused | processor
SELECT id, pow(1.0 + id / 1000000, 365) AS p FROM t
-- lib-04 | libm | function |
SELECT id, CAST(ln(abs(x) + 1) AS DECIMAL(38, 12)) AS l FROM t
-- lib-05 | libm | rewritten | inexact_division
SELECT id, CAST(pow(1.0 + id / 1000000, 365) AS DECIMAL(13, 9)) AS p, CAST(exp(id / 1000) AS DECIMAL(13, 8)) AS e FROM t
-- lib-08 | libm | refused | processor
SELECT id, CAST(exp(id / 1000) AS DECIMAL(38, 12)) AS e FROM t
-- lib-06 | libm | refused | processor
SELECT id, sin(id) AS s, log10(id + 1) AS l, tanh(id / 10000) AS h FROM t
-- lib-07 | libm | function |
SELECT id, sqrt(abs(x)) AS s, floor(x) AS f, ceil(x) AS c FROM t

-- dat-01 | date | function |
SELECT id, date_trunc('month', dt) AS m, year(dt) AS y, dayofweek(dt) AS d FROM t
-- dat-02 | date | function |
SELECT dt + INTERVAL 1 MONTH AS e, count(*) AS n FROM t GROUP BY e
-- dat-03 | date | function |
SELECT id, date_diff('day', dt, DATE '2026-06-30') AS d, last_day(dt) AS l FROM t
-- dat-04 | date | function |
SELECT id, strftime(ts, '%Y-%m-%d %H:%M') AS s, epoch_ms(ts) AS e FROM t
-- dat-05 | date | function |
SELECT id, CAST(ts AS DATE) AS d, hour(ts) AS h, monthname(dt) AS m FROM t
-- dat-06 | date | function |
SELECT time_bucket(INTERVAL 7 DAYS, dt) AS b, sum(amt) AS s FROM t GROUP BY b
-- clk-01 | clock | rewritten | clock
SELECT count(*) AS n FROM t WHERE dt >= current_date - INTERVAL 30 DAYS
-- clk-02 | clock | rewritten | clock
SELECT id, now() AS at FROM t WHERE id < 5
-- clk-03 | clock | rewritten | clock
SELECT id, today() - dt AS days FROM t
-- clk-04 | clock | refused | clock
SELECT id, get_current_time() AS c FROM t WHERE id < 5

-- txt-01 | text | function |
SELECT id, upper(memo) AS u, lower(memo) AS l, length(memo) AS n, trim(memo) AS s FROM t
-- txt-02 | text | function |
SELECT id, substr(memo, 2, 3) AS s, replace(memo, 'a', 'b') AS r, acct || '-' || memo AS c FROM t
-- txt-03 | text | function |
SELECT id FROM t WHERE memo LIKE '%e%' OR memo ILIKE 'R%'
-- txt-04 | text | function |
SELECT id, CAST(x AS VARCHAR) AS s, CAST(amt AS VARCHAR) AS a FROM t
-- txt-05 | text | function |
SELECT memo, md5(memo) AS m, sha256(memo) AS s FROM t GROUP BY memo
-- txt-06 | text | function |
SELECT id, levenshtein(memo, 'rent') AS d, reverse(memo) AS r, lpad(acct, 8, '0') AS p FROM t
-- rex-01 | regex | function |
SELECT id, regexp_extract(acct, '([0-9]+)', 1) AS d FROM t WHERE regexp_matches(memo, '^[A-Za-z]')
-- rex-02 | regex | function |
SELECT id, regexp_replace(memo, '[aeiou]', '_', 'g') AS r FROM t
-- jsn-01 | json | function |
SELECT id, json_extract_string(doc, '$.v') AS v, doc->>'$.tag' AS g FROM t
-- jsn-02 | json | function |
SELECT doc->>'$.tag' AS g, sum(CAST(doc->>'$.v' AS INTEGER)) AS s FROM t GROUP BY g
-- col-01 | collation | refused | collation
SELECT memo COLLATE de AS m, count(*) AS n FROM t GROUP BY m
-- col-02 | collation | refused | collation
SELECT id, memo FROM t ORDER BY memo COLLATE NOCASE, id LIMIT 5
-- col-03 | collation | refused | collation
SELECT strip_accents(memo) AS m, count(*) AS n FROM t GROUP BY m
-- hsh-01 | hash | refused | hash_order
SELECT id, hash(memo) AS h FROM t
-- hsh-02 | hash | refused | hash_order
SELECT grp, list_distinct(list(memo ORDER BY id))[1] AS m FROM t GROUP BY grp
-- hsh-03 | hash | function |
SELECT grp, len(list_distinct(list(memo ORDER BY memo))) AS n FROM t GROUP BY grp
-- rnd-01 | random | refused | random
SELECT id, random() AS r FROM t
-- rnd-02 | random | refused | random
SELECT id, uuid() AS u FROM t WHERE id < 10
-- rnd-03 | random | refused | random
SELECT id FROM t ORDER BY random() LIMIT 5
-- smp-01 | sample | refused | sample
SELECT count(*) AS n, sum(amt) AS s FROM t TABLESAMPLE 10%
-- smp-02 | sample | refused | sample
SELECT sum(amt) AS s FROM t USING SAMPLE 100 ROWS
-- smp-03 | sample | refused | sample
SELECT sum(amt) AS s FROM t USING SAMPLE reservoir(50 ROWS) REPEATABLE (7)
-- row-01 | rowid | refused | layout
SELECT rowid AS r, id FROM t
-- row-02 | rowid | refused | layout
SELECT max(id) AS m FROM t WHERE rowid < 100
-- ses-01 | session | refused | session
SELECT current_user AS u, count(*) AS n FROM t
-- ses-02 | session | refused | session
SELECT current_setting('threads') AS s FROM t LIMIT 1
-- ses-03 | session | refused | session
SELECT txid_current() AS v
-- ses-04 | session | refused | session
SELECT count(*) AS n FROM pragma_storage_info('t')
-- ses-05 | session | refused | session
SELECT current_connection_id() AS c

-- rec-01 | recursive | function |
WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 50) SELECT i FROM r
-- rec-02 | recursive | function |
WITH RECURSIVE r(k, depth) AS (SELECT k, 0 FROM u WHERE k < 3 UNION ALL SELECT u.k, r.depth + 1 FROM r JOIN u ON u.k = r.k * 2 + 1 WHERE r.depth < 6) SELECT k, depth FROM r
-- rec-03 | recursive | function |
WITH RECURSIVE r(k) AS (SELECT k FROM u WHERE k < 5 UNION SELECT u.k FROM r JOIN u ON u.k = r.k + 5) SELECT count(*) AS n, max(k) AS m FROM r
-- piv-01 | pivot | function |
SELECT * FROM (SELECT grp, flag, amt FROM t) PIVOT (sum(amt) FOR flag IN (true, false) GROUP BY grp)
-- A function of the data, and refused all the same: names of columns become values, which no row
-- of a source holds; so without a reason.
-- piv-02 | pivot | refused |
SELECT k, name, value FROM (SELECT k, rate, CAST(k AS DECIMAL(9, 4)) AS kk FROM u) UNPIVOT (value FOR name IN (rate, kk))
-- piv-03 | pivot | rewritten | unordered_aggregate
SELECT * FROM (SELECT grp, flag, memo FROM t) PIVOT (first(memo) FOR flag IN (true, false) GROUP BY grp)
-- lat-01 | lateral | function |
SELECT u.k, s.n FROM u, LATERAL (SELECT count(*) AS n FROM t WHERE t.acct = u.acct) s
-- lat-02 | lateral | rewritten | unordered_limit
SELECT u.k, s.id FROM u, LATERAL (SELECT id FROM t WHERE t.acct = u.acct LIMIT 2) s
-- lat-03 | lateral | function |
SELECT u.k, s.id FROM u, LATERAL (SELECT id FROM t WHERE t.acct = u.acct ORDER BY id LIMIT 2) s
-- asf-01 | asof | refused | asof_ties
SELECT t.id, n.c FROM t ASOF JOIN n ON t.memo = n.b AND t.grp >= n.a
-- asf-02 | asof | refused | asof_ties
SELECT t.id, u.rate FROM t ASOF LEFT JOIN u ON t.acct = u.acct AND t.dt >= u.dt
-- asf-03 | asof | function |
SELECT t.id, u.rate FROM t ASOF JOIN u ON t.id >= u.k
-- cor-01 | correlated | function |
SELECT k, (SELECT sum(amt) FROM t WHERE t.acct = u.acct) AS s FROM u
-- cor-02 | correlated | function |
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.acct = t.acct AND u.dt = t.dt)
-- cor-03 | correlated | function |
SELECT id, amt FROM t WHERE amt > (SELECT decimal_average(v.amt) FROM t AS v WHERE v.grp = t.grp)
-- cor-04 | correlated | rewritten | unordered_aggregate
SELECT k, (SELECT first(memo) FROM t WHERE t.acct = u.acct) AS m FROM u
-- lst-01 | list | function |
SELECT grp, unnest(list(DISTINCT qty ORDER BY qty)) AS q FROM t GROUP BY grp
-- lst-02 | list | function |
SELECT grp, list_sort(list(qty ORDER BY id))[1] AS lo, len(list(qty ORDER BY id)) AS n FROM t GROUP BY grp
-- lst-03 | list | function |
SELECT k, i FROM u, range(0, 3) AS r(i)
-- lst-04 | list | rewritten | unordered_aggregate
SELECT grp, list_sort(list(qty))[1] AS lo FROM t GROUP BY grp
-- lst-05 | list | function |
SELECT id, list_contains([1, 2, 3], qty) AS c, greatest(qty, grp, 3) AS g FROM t
-- lst-06 | list | function |
SELECT id, string_split(acct, '0')[1] AS s FROM t
-- cte-01 | nesting | function |
WITH a AS (SELECT acct, sum(amt) AS s FROM t GROUP BY acct), b AS (SELECT max(s) AS m FROM a) SELECT acct, s FROM a, b WHERE s = m
-- cte-02 | nesting | rewritten | unordered_aggregate, window_ties
SELECT grp, first(r) AS f FROM (SELECT grp, row_number() OVER (ORDER BY memo) AS r FROM t) q GROUP BY grp
-- cte-03 | nesting | rewritten | float_accumulation
SELECT memo, sum(x) AS s FROM t GROUP BY memo ORDER BY memo LIMIT 3
-- typ-01 | types | function |
SELECT id, flag, CAST(qty AS SMALLINT) AS s, CAST(dt AS TIMESTAMP) AS d, amt::DECIMAL(20, 4) AS a FROM t
-- typ-02 | types | function |
SELECT id, TRY_CAST(memo AS INTEGER) AS i, coalesce(memo, acct, '-') AS c, w AS f FROM t
-- typ-03 | types | function |
SELECT id, round(x, 2) AS r, round(w, 1) AS s FROM t
-- rng-01 | range | function | outside_range
SELECT count(*) AS n, sum(amt) AS s FROM t WHERE qty <= 50
-- eqv-01 | equal values | refused | equal_values
SELECT max(x)::VARCHAR AS m FROM t
-- eqv-02 | equal values | refused | equal_values
SELECT x::VARCHAR AS m, count(*) AS n FROM t GROUP BY x
-- eqv-03 | equal values | refused | equal_values
SELECT DATE '2026-02-01' + max(CASE WHEN qty > 5 THEN INTERVAL 30 DAY ELSE INTERVAL 1 MONTH END) AS d FROM t
