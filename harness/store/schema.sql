-- The store's schema. Comments after a column are its documentation: README.md is generated from them.
-- Every table: `seq` is the row's number in the chain, over all tables. The append-only guards (no update, no delete,
-- no replace) are the same for every table and are made by schema.c.

-- One row for every row of every other table, in the order of writing: the tamper-evident spine.
CREATE TABLE chain (
  seq INTEGER PRIMARY KEY, -- 1, 2, 3 ... without gaps; the described row has the same seq
  tab TEXT NOT NULL, -- table the row stands in
  hash BLOB NOT NULL CHECK (length(hash) = 32), -- SHA-256 of the previous hash, the table name and the row's bytes
  hints BLOB NOT NULL -- four check bytes for each column, so that a damaged column can be named
) STRICT;

-- A computer, by what is fixed about it.
CREATE TABLE machine (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 64), -- SHA-256 of facts
  name TEXT, -- a profile's name when first seen
  facts TEXT NOT NULL CHECK (json_valid(facts)) -- JSON: processor, memory, caches, kernel, GPU ...
) STRICT;

-- An inference engine as it was started: program, version, command line, settings asked for and read back.
CREATE TABLE engine (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 64), -- SHA-256 of facts
  name TEXT NOT NULL, -- llama.cpp, ollama, vllm ...
  facts TEXT NOT NULL CHECK (json_valid(facts)) -- JSON: version, build, digest of the program, cmdline, settings
) STRICT;

-- A model file.
CREATE TABLE model (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 64), -- SHA-256 of the file
  name TEXT NOT NULL,
  bytes INTEGER CHECK (bytes >= 0), -- size of the file
  facts TEXT NOT NULL CHECK (json_valid(facts)) -- JSON: metadata, tensors by type, bytes read per token
) STRICT;

-- An experiment script, in full.
CREATE TABLE experiment (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 64), -- SHA-256 of script
  name TEXT NOT NULL, -- bandwidth-law
  script TEXT NOT NULL, -- the Lua text
  facts TEXT NOT NULL CHECK (json_valid(facts)) -- JSON: title, question, map, day, libraries and their hashes
) STRICT;

-- One execution of a plan. What happened to it stands in run_state.
CREATE TABLE run (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  kind TEXT NOT NULL CHECK (kind IN ('experiment', 'probe', 'calibrate', 'rerun', 'import')),
  experiment TEXT REFERENCES experiment (id),
  machine TEXT NOT NULL REFERENCES machine (id), -- where the engine ran
  claim TEXT CHECK (length(claim) > 0), -- T1 ... T4 when the live probe matched that profile
  simulated INTEGER NOT NULL CHECK (simulated IN (0, 1)), -- 1: nothing was measured
  plan TEXT NOT NULL, -- canonical text
  plan_sha256 TEXT NOT NULL CHECK (length(plan_sha256) = 64),
  seed INTEGER NOT NULL, -- 64 bits, unsigned, shown as signed
  argv TEXT CHECK (argv IS NULL OR json_valid(argv)), -- JSON: the command line
  env TEXT CHECK (env IS NULL OR json_valid(env)), -- JSON: allowed environment variables
  tally TEXT CHECK (tally IS NULL OR json_valid(tally)), -- JSON: version, revision, dirty
  git TEXT CHECK (git IS NULL OR json_valid(git)), -- JSON: revision, dirty patch digest, remotes without credentials
  facts TEXT CHECK (facts IS NULL OR json_valid(facts)), -- JSON: whatever else was known before the first request
  rerun_of TEXT, -- what this run repeats: a figure or run, perhaps of another database
  wall_ns INTEGER NOT NULL CHECK (wall_ns > 0), -- ns since 1970: the anchor; all t_*_ns of session 0 count from it
  utc_offset TEXT NOT NULL CHECK (utc_offset GLOB '[+-][0-9][0-9]:[0-9][0-9]'),
  CHECK (kind <> 'experiment' OR experiment IS NOT NULL)
) STRICT;
CREATE INDEX run_experiment ON run (experiment);

-- The transitions of a run. The newest one is its state; `started` or `resumed` without a process that holds the
-- run's lock means that the process ended without a word.
CREATE TABLE run_state (
  seq INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES run (id),
  session INTEGER NOT NULL CHECK (session >= 0), -- 0 at first, one more for each resume
  state TEXT NOT NULL CHECK (state IN ('started', 'resumed', 'interrupted', 'failed', 'done', 'invalid')),
  t_ns INTEGER NOT NULL, -- since the session's anchor
  reason TEXT,
  facts TEXT CHECK (facts IS NULL OR json_valid(facts)), -- JSON
  wall_ns INTEGER CHECK (wall_ns > 0), -- resumed only: the new session's anchor
  utc_offset TEXT CHECK (utc_offset GLOB '[+-][0-9][0-9]:[0-9][0-9]'),
  CHECK (state NOT IN ('failed', 'invalid') OR coalesce(length(reason), 0) > 0),
  CHECK ((state = 'resumed') = (wall_ns IS NOT NULL) AND (wall_ns IS NULL) = (utc_offset IS NULL))
) STRICT;
CREATE INDEX run_state_run ON run_state (run);

-- One condition of a run: one point of its axes.
CREATE TABLE cell (
  seq INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES run (id),
  key TEXT NOT NULL CHECK (length(key) > 0), -- the plan's name for it
  position INTEGER NOT NULL CHECK (position >= 0),
  axes TEXT NOT NULL CHECK (json_valid(axes)), -- JSON: {"context": 512, "model": "q4_0"}
  model TEXT REFERENCES model (id),
  facts TEXT CHECK (facts IS NULL OR json_valid(facts)), -- JSON: workload, prompt set digest ...
  UNIQUE (run, key),
  UNIQUE (run, position)
) STRICT;

-- One visit of a block, that is of a cell in a round. A block that was cut short is visited again on resume.
CREATE TABLE trial (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  run TEXT NOT NULL REFERENCES run (id),
  cell TEXT NOT NULL,
  round INTEGER NOT NULL CHECK (round >= 0),
  position INTEGER NOT NULL CHECK (position >= 0), -- place in the plan's order
  session INTEGER NOT NULL, -- of the run; its anchor is where times count from
  engine TEXT REFERENCES engine (id), -- NULL: simulated
  cache_claimed TEXT NOT NULL, -- cold, primed, warm(90%)
  t_start_ns INTEGER NOT NULL,
  probe_before TEXT CHECK (probe_before IS NULL OR json_valid(probe_before)), -- JSON: the paired ruler and the machine's state
  FOREIGN KEY (run, cell) REFERENCES cell (run, key)
) STRICT;
CREATE INDEX trial_block ON trial (run, cell, round);
CREATE TRIGGER trial_active BEFORE INSERT ON trial
WHEN (SELECT state FROM run_state WHERE run = new.run ORDER BY seq DESC LIMIT 1) NOT IN ('started', 'resumed')
BEGIN SELECT RAISE(ABORT, 'the run has ended: resume it first'); END;

-- How a visit ended. Absent: the process ended first.
CREATE TABLE trial_end (
  seq INTEGER PRIMARY KEY,
  trial TEXT NOT NULL UNIQUE REFERENCES trial (id),
  finished INTEGER NOT NULL CHECK (finished IN (0, 1)), -- 1: all its requests are in
  reason TEXT,
  cache_verified TEXT, -- what the engine's own counts say; NULL: it does not tell
  t_end_ns INTEGER NOT NULL,
  probe_after TEXT CHECK (probe_after IS NULL OR json_valid(probe_after)), -- JSON
  facts TEXT CHECK (facts IS NULL OR json_valid(facts)), -- JSON: flags, relabelling, engine counters
  CHECK (finished = 1 OR coalesce(length(reason), 0) > 0)
) STRICT;

-- One request, whatever became of it. NULL times did not happen.
CREATE TABLE request (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  trial TEXT NOT NULL REFERENCES trial (id),
  position INTEGER NOT NULL CHECK (position >= 0), -- in the trial
  role TEXT NOT NULL CHECK (role IN ('warmup', 'measured')),
  session INTEGER, -- simulated user, where the workload has users
  outcome TEXT NOT NULL CHECK (outcome IN ('ok', 'failed', 'truncated', 'timeout', 'cancelled')),
  error_class TEXT,
  error_text TEXT, -- the server's or the transport's own words
  http_status INTEGER,
  t_intended_ns INTEGER NOT NULL, -- when the schedule wanted it; all times count from the session's anchor
  t_sent_ns INTEGER, -- last request byte handed to the kernel
  t_connected_ns INTEGER,
  t_headers_ns INTEGER,
  t_first_byte_ns INTEGER,
  t_close_ns INTEGER,
  connects INTEGER, -- connections used: more than one means a silent resend
  body TEXT CHECK (body IS NULL OR json_valid(body)), -- JSON: the request as sent
  prompt_sha256 TEXT CHECK (length(prompt_sha256) = 64),
  counters TEXT CHECK (counters IS NULL OR json_valid(counters)), -- JSON: token counts of each source, side by side
  metrics TEXT CHECK (metrics IS NULL OR json_valid(metrics)), -- JSON: ttft_ns, tpot_ns, decode_rate ...; undefined is null, never 0
  finish_reason TEXT,
  text_sha256 TEXT CHECK (length(text_sha256) = 64), -- of the answer
  last_object TEXT, -- the last record with usage or timings, verbatim
  UNIQUE (trial, position),
  CHECK (outcome <> 'failed' OR coalesce(length(error_class), 0) > 0)
) STRICT;
CREATE TRIGGER request_active BEFORE INSERT ON request
WHEN EXISTS (SELECT 1 FROM trial_end WHERE trial = new.trial)
BEGIN SELECT RAISE(ABORT, 'the trial has ended'); END;

-- When each piece of a request's answer arrived.
CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  request TEXT NOT NULL UNIQUE REFERENCES request (id),
  count INTEGER NOT NULL CHECK (count >= 0),
  body BLOB NOT NULL -- delta-coded varints: time, kind, bytes, read (layout: events.c)
) STRICT;

-- Series and snapshots taken while a run went on.
CREATE TABLE telemetry (
  seq INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES run (id),
  trial TEXT REFERENCES trial (id),
  source TEXT NOT NULL CHECK (length(source) > 0), -- machine, gpu0, engine.metrics ...
  t_ns INTEGER NOT NULL,
  body TEXT NOT NULL CHECK (json_valid(body)) -- JSON
) STRICT;
CREATE INDEX telemetry_run ON telemetry (run);

-- A file that belongs to a run: engine log, dirty patch, prompts.
CREATE TABLE artifact (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  run TEXT REFERENCES run (id),
  trial TEXT REFERENCES trial (id),
  name TEXT NOT NULL CHECK (length(name) > 0), -- engine.log
  mime TEXT NOT NULL,
  sha256 TEXT NOT NULL CHECK (length(sha256) = 64),
  bytes INTEGER NOT NULL CHECK (bytes = length(body)),
  body BLOB NOT NULL
) STRICT;
CREATE INDEX artifact_run ON artifact (run);

-- Which values a derived value was computed from. Written before the value itself, so no circle can be stored.
CREATE TABLE edge (
  seq INTEGER PRIMARY KEY,
  value TEXT NOT NULL REFERENCES value (id) DEFERRABLE INITIALLY DEFERRED,
  input TEXT NOT NULL REFERENCES value (id),
  role TEXT NOT NULL CHECK (length(role) > 0), -- the formula's name for the input
  position INTEGER NOT NULL CHECK (position >= 0),
  UNIQUE (value, position)
) STRICT;
CREATE INDEX edge_input ON edge (input);
CREATE TRIGGER edge_closed BEFORE INSERT ON edge
WHEN EXISTS (SELECT 1 FROM value WHERE id = new.value)
BEGIN SELECT RAISE(ABORT, 'the value is stored already: its inputs cannot change'); END;

-- A number with its unit, label and source.
CREATE TABLE value (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  run TEXT REFERENCES run (id),
  cell TEXT,
  name TEXT NOT NULL CHECK (length(name) > 0), -- decode_rate, predicted.decode_rate
  label TEXT NOT NULL CHECK (label IN ('official', 'measured', 'derived', 'cited')),
  number REAL CHECK (abs(number) < 9e999), -- finite (9e999 is infinity to SQLite), or NULL with a reason
  null_reason TEXT,
  lo REAL CHECK (abs(lo) < 9e999), -- interval
  hi REAL CHECK (abs(hi) < 9e999),
  interval TEXT, -- how the interval was made
  n INTEGER CHECK (n >= 0), -- samples behind it
  unit TEXT NOT NULL CHECK (length(unit) > 0), -- tok/s, GB/s, 1
  statistic TEXT, -- median ...
  formula TEXT, -- derived: what was computed
  source TEXT NOT NULL CHECK (json_valid(source)), -- JSON: official url, title, retrieved; cited who, where, when
  CHECK ((number IS NULL) = (coalesce(length(null_reason), 0) > 0)),
  CHECK ((lo IS NULL) = (hi IS NULL) AND (lo IS NULL OR (lo <= hi AND coalesce(length(interval), 0) > 0))),
  CHECK (cell IS NULL OR run IS NOT NULL),
  FOREIGN KEY (run, cell) REFERENCES cell (run, key)
) STRICT;
CREATE INDEX value_run ON value (run, cell, name);
CREATE INDEX value_name ON value (name);
CREATE TRIGGER value_measured BEFORE INSERT ON value
WHEN new.label = 'measured'
 AND NOT EXISTS (SELECT 1 FROM run WHERE id = new.run AND simulated = 0)
BEGIN SELECT RAISE(ABORT, 'a measured value needs a run that was not simulated'); END;
CREATE TRIGGER value_derived BEFORE INSERT ON value
WHEN new.label = 'derived'
 AND (coalesce(length(new.formula), 0) = 0 OR NOT EXISTS (SELECT 1 FROM edge WHERE value = new.id))
BEGIN SELECT RAISE(ABORT, 'a derived value needs a formula and at least one input'); END;
CREATE TRIGGER value_official BEFORE INSERT ON value
WHEN new.label = 'official' AND coalesce(length(trim(json_extract(new.source, '$.url'))), 0) = 0
BEGIN SELECT RAISE(ABORT, 'an official value needs source.url'); END;
CREATE TRIGGER value_cited BEFORE INSERT ON value
WHEN new.label = 'cited'
 AND (coalesce(length(trim(json_extract(new.source, '$.who'))), 0) = 0
   OR coalesce(length(trim(json_extract(new.source, '$.where'))), 0) = 0
   OR coalesce(length(trim(json_extract(new.source, '$.when'))), 0) = 0)
BEGIN SELECT RAISE(ABORT, 'a cited value needs source.who, source.where and source.when'); END;

-- A published figure: from what it was drawn.
CREATE TABLE figure (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  report TEXT NOT NULL CHECK (length(report) > 0),
  name TEXT NOT NULL CHECK (length(name) > 0), -- fig-1
  run TEXT REFERENCES run (id), -- newest run it shows
  spec_sha256 TEXT CHECK (length(spec_sha256) = 64),
  data_sha256 TEXT CHECK (length(data_sha256) = 64),
  render_sha256 TEXT CHECK (length(render_sha256) = 64),
  spec TEXT CHECK (spec IS NULL OR json_valid(spec)), -- JSON
  data TEXT CHECK (data IS NULL OR json_valid(data)), -- JSON
  facts TEXT CHECK (facts IS NULL OR json_valid(facts)), -- JSON: tools and versions, runs, values
  command TEXT -- the reader's one command
) STRICT;
CREATE INDEX figure_report ON figure (report, name);

-- A correction that everybody can see. The value stays.
CREATE TABLE retraction (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (length(id) = 26), -- ULID
  value TEXT NOT NULL REFERENCES value (id),
  why TEXT NOT NULL CHECK (length(trim(why)) > 0),
  instead TEXT REFERENCES value (id) CHECK (instead <> value), -- what replaces it
  wall_ns INTEGER NOT NULL CHECK (wall_ns > 0) -- ns since 1970
) STRICT;
CREATE INDEX retraction_value ON retraction (value);
