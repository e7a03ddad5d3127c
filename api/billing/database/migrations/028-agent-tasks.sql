-- Jobs as the tasks of agents: the conversation that a job belongs to, and whom to notify when it has ended.

-- As the agent names it; a job that an agent did not begin has none.
alter table tools.job add column context text;

create schema if not exists agents;

create table agents.push_config (
  job uuid not null references tools.job (id) on delete cascade,
  id text not null,
  url text not null,
  -- Secrets of the receiver: gone once the notification is delivered or given up, and with the job in any case.
  token text,
  scheme text,
  credentials text,
  -- The version of the protocol in which the notification is written.
  version text not null,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'abandoned')),
  -- How often it was tried. A try moves due_at on before it begins: a process that dies in the middle is followed by another.
  attempts smallint not null default 0,
  due_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default clock_timestamp(),
  primary key (job, id)
);
create index push_config_due on agents.push_config (due_at) where state = 'waiting';
