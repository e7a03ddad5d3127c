-- First visits of hosted apps by a script: the page, then one question by the app's own interface, as somebody who was
-- never there. Every visit is kept, those that failed too.

create table bench.visit (
  id uuid primary key,
  app text not null,
  at timestamptz not null default clock_timestamp(),
  app_commit text,
  image text,
  -- Requests that a visitor makes, the page included; polling counts once.
  steps integer not null check (steps > 0),
  -- From the first request to the useful answer, or until it was given up.
  latency_ms integer not null check (latency_ms >= 0),
  answered boolean not null,
  -- Why there was no useful answer.
  detail text check (length(detail) <= 500),
  check (answered = (detail is null))
);
create index visit_app on bench.visit (app, at);
