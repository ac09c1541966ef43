CREATE TABLE t (
 a TEXT
);
x INSERT INTO t (n_prompt, n_gen, avg_ts, model_filename) VALUES ('1', '0', 'it''s', 'it's');
