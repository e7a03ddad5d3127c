-- What authors did with their apps through the API. A row is written before the action, and a second one if it failed.
create schema author;

create table author.action (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  -- UID of the HostedApp, and its name at that time.
  app text not null,
  slug text not null,
  -- First 12 digits of the hash of the author key.
  actor text not null,
  action text not null,
  -- Never holds a secret value.
  detail jsonb not null default '{}',
  outcome text not null check (outcome in ('accepted', 'failed')),
  -- X-Request-Id of the request.
  request text not null
);
create index action_app on author.action (app, id desc);

create function author.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% of author.% is refused: an audit log is only added to', tg_op, tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger action_immutable before update or delete or truncate on author.action
  for each statement execute function author.refuse_change();
