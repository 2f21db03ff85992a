-- Version 3: why the server grants nothing yet, and who opened it before its time. Version 2 was an
-- earlier set of the functions, which versions 5 and 6 replace, as was version 4.

ALTER TABLE holdfast.met ADD COLUMN why text NOT NULL DEFAULT '';

CREATE TABLE holdfast.opened (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      text NOT NULL,         -- the life that was opened
    at      timestamptz NOT NULL,
    open_at timestamptz NOT NULL,  -- when it would have granted by itself
    role    text NOT NULL,
    label   bytea NOT NULL,
    reason  bytea NOT NULL
);
