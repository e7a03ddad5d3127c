-- Benchmarks of models through hosted apps: campaigns, their runs, the model calls of each, and what they add up to.
-- A run is registered before it starts and never removed, so that none can be left out of what is published.

create schema if not exists bench;

create table bench.campaign (
  id uuid primary key,
  app text not null,
  models text[] not null check (cardinality(models) > 0),
  -- [{task, hash, born}], as they were when it was registered
  tasks jsonb not null,
  runs integer not null check (runs > 0),
  -- Instances of odd runs come from seed, of even ones from held_back_seed, of which only the hash is published.
  seed text not null,
  held_back_seed text not null,
  held_back_hash text not null,
  parameters jsonb not null,
  -- How model calls are known to be of a run: by a marker that the app passes on, or because all calls of the app are.
  attribution text not null check (attribution in ('marker', 'app')),
  -- The process that runs it; another one may take over, and then this one writes no more.
  runner uuid not null,
  registered_at timestamptz not null,
  finished_at timestamptz
);
create index campaign_app on bench.campaign (app, registered_at);

create table bench.run (
  id uuid primary key,
  campaign uuid not null references bench.campaign,
  app text not null,
  model text not null,
  task text not null,
  number integer not null check (number > 0),
  -- Above 1 where an earlier attempt was interrupted.
  attempt integer not null default 1 check (attempt > 0),
  held_back boolean not null,
  task_hash text not null,
  instance text not null,
  state text not null default 'registered' check (state in ('registered', 'running', 'finished', 'interrupted')),
  app_commit text,
  image text,
  router text,
  parameters jsonb not null,
  passed boolean,
  score double precision check (score between 0 and 1),
  -- The ledger's sum over the model calls of the run.
  cost numeric(20,12) check (cost >= 0),
  cost_state text check (cost_state in ('exact', 'pending', 'unknown')),
  model_calls integer,
  tokens_in bigint,
  tokens_out bigint,
  latency_ms integer check (latency_ms >= 0),
  error text check (error in ('outage', 'limit', 'app-5xx', 'timeout', 'wake', 'malformed', 'refused', 'wrong', 'grader')),
  detail text check (length(detail) <= 500),
  output_hash text,
  -- Downloads go on from this time, page by page.
  registered_at timestamptz not null check (registered_at = date_trunc('milliseconds', registered_at)),
  started_at timestamptz,
  at timestamptz,
  unique (campaign, model, task, number, attempt),
  check ((state = 'finished') = (passed is not null)),
  check (state <> 'finished' or (score is not null and latency_ms is not null and passed = (error is null))),
  check ((state in ('finished', 'interrupted')) = (at is not null and cost_state is not null))
);
create index run_published on bench.run (app, registered_at, id);
create index run_cell on bench.run (app, model, task) include (passed, cost, latency_ms) where state = 'finished';
create index run_open on bench.run (app, state) where state <> 'finished';
create index run_next on bench.run (campaign, number, task, model) where state in ('registered', 'running');
create index run_cost_pending on bench.run (at) where cost_state = 'pending';

-- Which model answers an app's calls at /v1 while a run of it is in progress. Marker '': all calls of the app.
create table bench.assignment (
  app text not null,
  marker text not null,
  run uuid not null unique references bench.run,
  model text not null,
  -- A runner that ended leaves it behind; it holds no longer than its run could take.
  until timestamptz not null,
  primary key (app, marker)
);

-- Model calls of runs, noted before money is reserved for them; outcome is null while one is in progress.
create table bench.call (
  hold uuid primary key,
  run uuid not null references bench.run,
  at timestamptz not null default clock_timestamp(),
  outcome text
);
create index call_run on bench.call (run);

-- What finished runs add up to, per app, model and task; task '' is all tasks. Made anew from the runs with each one that finishes.
create table bench.summary (
  app text not null,
  model text not null,
  task text not null,
  runs integer not null,
  passed integer not null,
  -- Runs that show nothing of the model: its upstream was out, or a limit of ours refused the call.
  unanswered integer not null,
  cost numeric(20,12) not null,
  cost_unknown integer not null,
  latency_p50 double precision not null,
  latency_p95 double precision not null,
  errors jsonb not null,
  updated timestamptz not null,
  primary key (app, model, task)
);

create function bench.summarize(p_app text, p_model text, p_task text) returns void language plpgsql as $$
begin
  insert into bench.summary as s
    select p_app, p_model, p_task, count(*), count(*) filter (where passed),
      count(*) filter (where error in ('outage', 'limit')), coalesce(sum(cost), 0), count(*) filter (where cost_state <> 'exact'),
      percentile_cont(0.5) within group (order by latency_ms), percentile_cont(0.95) within group (order by latency_ms),
      (select coalesce(jsonb_object_agg(error, many), '{}') from (
        select error, count(*) as many from bench.run
          where app = p_app and model = p_model and (p_task = '' or task = p_task) and state = 'finished' and error is not null
          group by error) e),
      max(at)
    from bench.run where app = p_app and model = p_model and (p_task = '' or task = p_task) and state = 'finished'
    having count(*) > 0
    on conflict (app, model, task) do update set runs = excluded.runs, passed = excluded.passed, unanswered = excluded.unanswered,
      cost = excluded.cost, cost_unknown = excluded.cost_unknown, latency_p50 = excluded.latency_p50, latency_p95 = excluded.latency_p95,
      errors = excluded.errors, updated = excluded.updated;
end $$;

-- What the ledger knows of the model calls of a run. A call that reserved nothing cost nothing.
create function bench.cost_of(p_run uuid, out cost numeric, out cost_state text, out calls integer, out tokens_in bigint, out tokens_out bigint)
language sql stable as $$
  select coalesce(sum(h.cost), 0),
    case when bool_or(h.state in ('open', 'pending', 'expired') or (h.id is null and c.outcome is null and c.at > clock_timestamp() - interval '1 hour')) then 'pending'
      when bool_or(h.state = 'abandoned') then 'unknown' else 'exact' end,
    count(*)::integer, sum(u.tokens_in), sum(u.tokens_out)
  from bench.call c left join ledger.hold h on h.id = c.hold left join ledger.usage u on u.id = c.hold::text
  where c.run = p_run
$$;

-- Registers a campaign with all of its runs. Each run: {id, model, task, number, held_back, task_hash, instance}.
create function bench.register(p_campaign jsonb, p_runs jsonb) returns void language plpgsql as $$
declare
  -- Downloads go on from this time page by page, and their readers know milliseconds only.
  v_at timestamptz := date_trunc('milliseconds', clock_timestamp());
begin
  insert into bench.campaign (id, app, models, tasks, runs, seed, held_back_seed, held_back_hash, parameters, attribution, runner, registered_at)
    select c.id, c.app, array(select jsonb_array_elements_text(p_campaign -> 'models')), c.tasks, c.runs, c.seed, c.held_back_seed, c.held_back_hash,
      c.parameters, c.attribution, c.runner, v_at
    from jsonb_to_record(p_campaign) as c (id uuid, app text, tasks jsonb, runs integer, seed text, held_back_seed text, held_back_hash text,
      parameters jsonb, attribution text, runner uuid);
  insert into bench.run (id, campaign, app, model, task, number, held_back, task_hash, instance, parameters, registered_at)
    select r.id, (p_campaign ->> 'id')::uuid, p_campaign ->> 'app', r.model, r.task, r.number, r.held_back, r.task_hash, r.instance,
      p_campaign -> 'parameters', v_at
    from jsonb_to_recordset(p_runs) as r (id uuid, model text, task text, number integer, held_back boolean, task_hash text, instance text);
end $$;

-- Gives a campaign to another runner: what was running is interrupted and registered again. Returns how many those were.
create function bench.take_over(p_campaign uuid, p_runner uuid) returns integer language plpgsql as $$
declare
  v_at timestamptz := date_trunc('milliseconds', clock_timestamp());
  v_count integer := 0;
  r bench.run;
begin
  update bench.campaign set runner = p_runner where id = p_campaign;
  for r in select * from bench.run where campaign = p_campaign and state = 'running' for update loop
    delete from bench.assignment where run = r.id;
    update bench.run set state = 'interrupted', at = v_at,
        (cost, cost_state, model_calls, tokens_in, tokens_out) = (select c.cost, c.cost_state, c.calls, c.tokens_in, c.tokens_out from bench.cost_of(r.id) c)
      where id = r.id;
    insert into bench.run (id, campaign, app, model, task, number, attempt, held_back, task_hash, instance, parameters, registered_at)
      values (gen_random_uuid(), r.campaign, r.app, r.model, r.task, r.number, r.attempt + 1, r.held_back, r.task_hash, r.instance, r.parameters, v_at);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;

-- Starts the next run of a campaign and assigns its model to the app. Null: none is left. 'taken': another runner has the
-- campaign. 'busy': all calls of the app are assigned to a run of another campaign.
create function bench.start_next(p_campaign uuid, p_runner uuid, p_release jsonb, p_ms bigint) returns jsonb language plpgsql as $$
declare
  v_at timestamptz := clock_timestamp();
  v_attribution text;
  v_marker text;
  r bench.run;
begin
  select attribution into v_attribution from bench.campaign where id = p_campaign and runner = p_runner for update;
  if not found then return '"taken"'; end if;
  select * into r from bench.run where campaign = p_campaign and state = 'registered' order by number, task, model limit 1 for update;
  if not found then
    update bench.campaign set finished_at = coalesce(finished_at, v_at) where id = p_campaign;
    return null;
  end if;
  v_marker := case when v_attribution = 'app' then '' else 'bench-' || r.id end;
  insert into bench.assignment as a (app, marker, run, model, until)
    values (r.app, v_marker, r.id, r.model, v_at + p_ms * interval '1 millisecond')
    on conflict (app, marker) do update set run = excluded.run, model = excluded.model, until = excluded.until where a.until < v_at;
  if not found then return '"busy"'; end if;
  update bench.run set state = 'running', started_at = v_at, app_commit = p_release ->> 'commit', image = p_release ->> 'image', router = p_release ->> 'router'
    where id = r.id;
  return jsonb_build_object('id', r.id, 'model', r.model, 'task', r.task, 'number', r.number, 'attempt', r.attempt, 'held_back', r.held_back,
    'marker', v_marker, 'instance', r.instance);
end $$;

-- Ends the assignment of a run, so that no further call is counted as its own. Returns the outcomes of its calls, the first one first.
create function bench.end_calls(p_run uuid) returns jsonb language plpgsql as $$
begin
  delete from bench.assignment where run = p_run;
  return (select coalesce(jsonb_agg(outcome order by at), '[]') from bench.call where run = p_run);
end $$;

-- Writes the result of a run and adds it up, both or neither. False: another runner has taken the campaign over meanwhile.
create function bench.finish(p_run uuid, p_runner uuid, p_result jsonb) returns boolean language plpgsql as $$
declare
  r bench.run;
begin
  select x.* into r from bench.run x join bench.campaign c on c.id = x.campaign
    where x.id = p_run and x.state = 'running' and c.runner = p_runner for update;
  if not found then return false; end if;
  delete from bench.assignment where run = p_run;
  update bench.run set state = 'finished', at = clock_timestamp(), passed = (p_result ->> 'passed')::boolean, score = (p_result ->> 'score')::double precision,
      latency_ms = (p_result ->> 'latency_ms')::integer, error = p_result ->> 'error', detail = p_result ->> 'detail', output_hash = p_result ->> 'output_hash',
      (cost, cost_state, model_calls, tokens_in, tokens_out) = (select c.cost, c.cost_state, c.calls, c.tokens_in, c.tokens_out from bench.cost_of(p_run) c)
    where id = p_run;
  perform bench.summarize(r.app, r.model, r.task);
  perform bench.summarize(r.app, r.model, '');
  return true;
end $$;

-- Looks again for costs that were not known when their run ended. Returns how many are known now.
create function bench.settle_costs(p_limit integer) returns integer language plpgsql as $$
declare
  v_count integer := 0;
  v record;
  r bench.run;
begin
  for r in select * from bench.run where cost_state = 'pending' order by at limit p_limit for update skip locked loop
    select * into v from bench.cost_of(r.id);
    continue when v.cost_state = 'pending';
    update bench.run set cost = v.cost, cost_state = v.cost_state, model_calls = v.calls, tokens_in = v.tokens_in, tokens_out = v.tokens_out where id = r.id;
    if r.state = 'finished' then
      perform bench.summarize(r.app, r.model, r.task);
      perform bench.summarize(r.app, r.model, '');
    end if;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
