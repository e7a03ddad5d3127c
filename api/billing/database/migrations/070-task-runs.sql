-- Runs of the tasks of apps, and of commands that authors started. Kubernetes keeps the last few, and the status of a HostedApp
-- the last twenty; here they are kept for their author.
create table author.task_run (
  -- UID of the HostedApp.
  app text not null,
  -- Name of the Job.
  id text not null,
  task text not null,
  trigger text not null check (trigger in ('schedule', 'manual', 'release')),
  -- Of a command that is no task.
  command jsonb,
  commit text,
  requested_at timestamptz,
  scheduled_at timestamptz,
  started_at timestamptz,
  ended_at timestamptz,
  exit_code int,
  -- How it ended, in the words of Kubernetes, or Missed, NotStarted, Replaced or Removed.
  reason text,
  -- The first of its times, by which runs are sorted.
  at timestamptz not null,
  primary key (app, id)
);
create index task_run_at on author.task_run (app, at desc, id desc);
create index task_run_task on author.task_run (app, task, at desc, id desc);
