-- Version 1 of the archive. A released step is never changed. Tables are in thru_store, and may change; views for others are in thru.
CREATE SCHEMA thru_store;
CREATE SCHEMA thru;
COMMENT ON SCHEMA thru IS 'Results of thru: thru help archive describes the columns';
SET LOCAL search_path = thru_store;

CREATE TABLE version (version integer NOT NULL);
INSERT INTO version VALUES (0);

-- A time as it sorts; earlier than the year 1 there is none.
CREATE FUNCTION time_of(text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN CASE WHEN $1 < '0001' COLLATE "C" THEN '-infinity' ELSE $1::timestamptz END;

CREATE FUNCTION mark_key(kind text, value text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN md5(kind || chr(10) || value)::uuid;

CREATE FUNCTION series_key(source text, target text, layer text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN md5(source || chr(10) || target || chr(10) || layer)::uuid;

CREATE TABLE results (
	n          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         text COLLATE "C" NOT NULL UNIQUE,
	sha256     text COLLATE "C" NOT NULL UNIQUE, -- of the document's JSON
	started    text COLLATE "C" NOT NULL,        -- UTC, as it sorts
	started_at timestamptz NOT NULL GENERATED ALWAYS AS (time_of(started)) STORED,
	command    text NOT NULL,
	plan       text NOT NULL,
	verdict    text NOT NULL,
	failed     boolean NOT NULL,
	size       bigint NOT NULL, -- bytes of document, entry and words
	words      text NOT NULL,   -- what a search looks in, in small letters
	entry      jsonb NOT NULL
);
CREATE INDEX results_by_time ON results (started DESC, id DESC);
CREATE INDEX results_by_begin ON results (started_at);
CREATE INDEX results_by_plan ON results (plan) WHERE plan <> '';

-- The index of a text search: an extension of PostgreSQL that not every server has.
DO $$ BEGIN
	CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
	EXECUTE format('CREATE INDEX results_by_words ON results USING gin (words %I.gin_trgm_ops)',
		(SELECT nspname FROM pg_extension JOIN pg_namespace AS s ON s.oid = extnamespace WHERE extname = 'pg_trgm'));
EXCEPTION WHEN OTHERS THEN NULL;
END $$;

CREATE TABLE marks (
	kind   text NOT NULL, -- 'host', 'pair', or 'label KEY'
	value  text NOT NULL,
	key    uuid NOT NULL GENERATED ALWAYS AS (mark_key(kind, value)) STORED,
	result bigint NOT NULL REFERENCES results ON DELETE CASCADE
);
CREATE INDEX marks_by_key ON marks (key, result);
CREATE INDEX marks_by_result ON marks (result);

CREATE TABLE documents (
	result bigint PRIMARY KEY REFERENCES results ON DELETE CASCADE,
	zstd   bytea NOT NULL -- its JSON (docs/result.md), compressed
);
ALTER TABLE documents ALTER zstd SET STORAGE EXTERNAL;

-- Parts of documents, as they were stored.
CREATE TABLE cells (
	result     bigint NOT NULL REFERENCES results ON DELETE CASCADE,
	place      integer NOT NULL, -- from 1
	source     text NOT NULL,
	target     text NOT NULL,
	started_at timestamptz NOT NULL,
	cell       jsonb NOT NULL, -- without its runs
	PRIMARY KEY (result, place)
);
CREATE INDEX cells_by_pair ON cells (source, target, started_at);

CREATE TABLE findings (
	result  bigint NOT NULL REFERENCES results ON DELETE CASCADE,
	place   integer NOT NULL, -- from 1: the binding one
	finding jsonb NOT NULL,
	PRIMARY KEY (result, place)
);

CREATE TABLE facts (
	result bigint NOT NULL REFERENCES results ON DELETE CASCADE,
	place  integer NOT NULL,
	host   text NOT NULL,
	facts  jsonb NOT NULL,
	PRIMARY KEY (result, place)
);

-- What a watch measures of a pair in one way; days have the layer ''.
CREATE TABLE series (
	n      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	source text NOT NULL,
	target text NOT NULL,
	layer  text NOT NULL,
	key    uuid NOT NULL UNIQUE GENERATED ALWAYS AS (series_key(source, target, layer)) STORED
);

CREATE TABLE samples (
	begin_at timestamptz NOT NULL,
	series   integer NOT NULL REFERENCES series,
	sample   jsonb NOT NULL, -- without its pair, layer, begin and id
	PRIMARY KEY (begin_at, series)
);
CREATE INDEX samples_by_series ON samples (series, begin_at);

-- Hours whose samples were removed; later ones are not stored.
CREATE TABLE hours (
	series   integer NOT NULL REFERENCES series,
	begin_at timestamptz NOT NULL,
	turns    jsonb NOT NULL, -- by their state
	ranges   jsonb NOT NULL, -- of each metric: count, min, median, mean, max
	PRIMARY KEY (series, begin_at)
);
CREATE INDEX hours_by_time ON hours (begin_at);

CREATE TABLE days (
	begin_at timestamptz NOT NULL,
	series   integer NOT NULL REFERENCES series,
	day      jsonb NOT NULL,
	PRIMARY KEY (begin_at, series)
);

-- Hours of the samples that are there.
CREATE VIEW sums AS
	WITH turns AS (
		SELECT series, begin_at, jsonb_object_agg(state, n) AS turns FROM (
			SELECT series, date_trunc('hour', begin_at, 'UTC') AS begin_at, sample ->> 'state' AS state, count(*) AS n FROM samples GROUP BY 1, 2, 3
		) AS t GROUP BY 1, 2
	), ranges AS (
		SELECT series, begin_at, jsonb_object_agg(metric, range) AS ranges FROM (
			SELECT series, date_trunc('hour', begin_at, 'UTC') AS begin_at, metric, jsonb_build_object('count', count(*), 'min', min(x), 'median',
				percentile_cont(0.5) WITHIN GROUP (ORDER BY x), 'mean', avg(x), 'max', max(x)) AS range
			FROM samples, LATERAL (SELECT key AS metric, value::text::float8 AS x FROM jsonb_each(sample -> 'values')) AS v GROUP BY 1, 2, 3
		) AS r GROUP BY 1, 2
	)
	SELECT series, begin_at, turns, coalesce(ranges, '{}') AS ranges FROM turns LEFT JOIN ranges USING (series, begin_at);

CREATE VIEW thru.results AS
	SELECT id, started_at, (entry ->> 'elapsed_ns')::float8 / 1e9 AS elapsed_s, command, entry ->> 'title' AS title, nullif(plan, '') AS plan,
		verdict, failed, entry ->> 'error' AS error, (entry ->> 'goodput_bps')::float8 AS goodput_bps,
		ARRAY(SELECT jsonb_array_elements_text(entry -> 'hosts')) AS hosts, ARRAY(SELECT jsonb_array_elements_text(entry -> 'pairs')) AS pairs,
		entry -> 'labels' AS labels, entry ->> 'thru_version' AS thru_version, (entry ->> 'document_bytes')::bigint AS document_bytes,
		(entry ->> 'kept_at')::timestamptz AS kept_at
	FROM results;

CREATE VIEW thru.cells AS
	SELECT id AS result_id, c.started_at, place AS cell, source, target, cell ->> 'name' AS name, cell ->> 'protocol' AS protocol,
		(cell ->> 'streams')::integer AS streams, coalesce((cell ->> 'beside')::boolean, false) AS baseline, cell ->> 'experiment' AS experiment,
		(cell #>> '{goodput_bps,value}')::float8 AS goodput_bps, (cell #>> '{goodput_bps,low}')::float8 AS goodput_low_bps,
		(cell #>> '{goodput_bps,high}')::float8 AS goodput_high_bps, (cell #>> '{goodput_bps,ci95_low}')::float8 AS goodput_ci95_low_bps,
		(cell #>> '{goodput_bps,ci95_high}')::float8 AS goodput_ci95_high_bps, (cell #>> '{goodput_bps,runs}')::integer AS runs,
		(cell #>> '{ceiling,bps}')::float8 AS ceiling_bps, (cell ->> 'rtt_idle_ns')::bigint AS rtt_idle_ns,
		(cell ->> 'rtt_loaded_ns')::bigint AS rtt_loaded_ns, (cell ->> 'retransmits_segments')::bigint AS retransmits_segments,
		(cell #>> '{datagrams,loss_pct}')::float8 AS loss_pct, (cell #>> '{datagrams,jitter_ns}')::bigint AS jitter_ns,
		(cell #>> '{transactions_per_s,value}')::float8 AS transactions_per_s, (cell #>> '{latency,p99_ns}')::bigint AS latency_p99_ns,
		(cell #>> '{sender_cpu,machine_pct}')::float8 AS sender_cpu_pct, (cell #>> '{receiver_cpu,machine_pct}')::float8 AS receiver_cpu_pct,
		cell #>> '{error,message}' AS error
	FROM cells AS c JOIN results ON n = result;

CREATE VIEW thru.findings AS
	SELECT id AS result_id, started_at, place AS rank, finding ->> 'cause' AS cause, finding ->> 'confidence' AS confidence,
		coalesce((finding ->> 'healthy')::boolean, false) AS healthy, finding #>> '{where,place}' AS place, finding #>> '{where,end_point}' AS end_point,
		finding #>> '{where,from}' AS source, finding #>> '{where,to}' AS target, finding ->> 'because_of' AS because_of,
		finding ->> 'summary' AS summary, (finding #>> '{effect,bound_bps}')::float8 AS bound_bps, (finding #>> '{effect,cost_pct}')::float8 AS cost_pct
	FROM findings JOIN results ON n = result;

CREATE VIEW thru.facts AS
	SELECT id AS result_id, started_at, host, facts ->> 'hostname' AS hostname, fact, value
	FROM facts JOIN results ON n = result, LATERAL (
		WITH RECURSIVE part (fact, v) AS (
			SELECT key, value FROM jsonb_each(facts)
			UNION ALL SELECT fact || '.' || key, inner_v FROM part, LATERAL (
				SELECT key, value FROM jsonb_each(CASE jsonb_typeof(v) WHEN 'object' THEN v END)
				UNION ALL SELECT (i - 1)::text, e FROM jsonb_array_elements(CASE jsonb_typeof(v) WHEN 'array' THEN v END) WITH ORDINALITY AS a (e, i)
			) AS p (key, inner_v)
		)
		SELECT fact, v #>> '{}' AS value FROM part WHERE jsonb_typeof(v) NOT IN ('object', 'array', 'null')
	) AS flat;

CREATE VIEW thru.samples AS
	SELECT begin_at, source, target, layer, (sample ->> 'seconds')::float8 AS seconds, sample ->> 'state' AS state, sample ->> 'reason' AS reason,
		sample ->> 'error' AS error, sample ->> 'route' AS route, x.*
	FROM samples JOIN series ON n = series, jsonb_to_record(coalesce(sample -> 'values', '{}')) AS x (sent_packets float8, loss_ratio float8,
		rtt_min_ns float8, rtt_p50_ns float8, rtt_p99_ns float8, delay_p50_ns float8, delay_error_ns float8, mtu_bytes float8, hops float8,
		capacity_bps float8, goodput_bps float8, cpu_sender_s_per_gb float8, cpu_receiver_s_per_gb float8, retransmit_ratio float8,
		rtt_loaded_ns float8, other_load_ratio float8, traffic_bytes float8);

CREATE VIEW thru.hours AS
	SELECT begin_at, source, target, layer, metric, x.*
	FROM (SELECT * FROM hours UNION ALL SELECT * FROM sums) AS h JOIN series ON n = series, LATERAL (SELECT key AS metric, value FROM jsonb_each(ranges)) AS m,
		jsonb_to_record(value) AS x (count integer, min float8, median float8, mean float8, max float8);
