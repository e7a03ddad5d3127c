-- Whose revenue it is: the account behind a host and owner, as the forge numbers it. Owner names can be given to somebody else.

create table revenue.account (
  -- Host and owner, in lower case.
  author text primary key,
  -- Kind of forge and the number of the account there, like github:583231.
  account text not null,
  noted_at timestamptz not null default clock_timestamp(),
  -- Another account that the forge named since. From then on nothing accrues, is shown or is paid out.
  other text check (other <> account),
  frozen_at timestamptz,
  check ((other is null) = (frozen_at is null))
);

-- Binds an author to the first account that is found, and freezes it when there is another one. Returns bound, frozen or known.
create function revenue.note_account(p_author text, p_account text, p_at timestamptz default null) returns text language plpgsql as $$
begin
  insert into revenue.account (author, account) values (p_author, p_account) on conflict (author) do nothing;
  if found then return 'bound'; end if;
  update revenue.account a set other = p_account, frozen_at = coalesce(p_at, clock_timestamp())
    where a.author = p_author and a.account <> p_account and a.other is null;
  return case when found then 'frozen' else 'known' end;
end $$;

create function revenue.is_frozen(p_author text) returns boolean language sql stable as $$
  select exists (select from revenue.account where author = p_author and frozen_at is not null)
$$;

-- Binds an author to the account that was found, or to the earlier one again, and lets the days since then be posted. False
-- where it is neither.
create function revenue.unfreeze(p_author text, p_account text) returns boolean language plpgsql as $$
declare
  v_frozen_at timestamptz;
begin
  select frozen_at into v_frozen_at from revenue.account where author = p_author and p_account in (account, other) for update;
  if v_frozen_at is null then return false; end if;
  update revenue.account set account = p_account, other = null, frozen_at = null where author = p_author;
  update revenue.progress set received_until = least(received_until, v_frozen_at - interval '1 day');
  return true;
end $$;

-- Answers that come with an ETag say nothing of the account; ask once more for all.
update catalog.repository set etag = null;

-- As before; of an author who is frozen, nothing is posted.
create or replace function revenue.days_to_post(p_at timestamptz default null) returns table (app text, day date) language sql stable as $$
  select distinct u.app, (u.at at time zone 'utc')::date
  from ledger.usage u, revenue.progress p
  where u.received_at >= p.received_until and u.app is not null and u.kind in ('visit', 'app') and u.class = 'use'
    and u.at < ledger.day_start((coalesce(p_at, clock_timestamp()) at time zone 'utc')::date)
    and not exists (select from revenue.hosted_on(u.app, (u.at at time zone 'utc')::date) h where revenue.is_frozen(h.author))
$$;
