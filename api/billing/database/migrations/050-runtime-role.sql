-- The API may run as a role that owns nothing (api/billing/database/roles.ts). What it does to the tables of days requires
-- their owner, so these two functions run with the rights of theirs. Names in them are all qualified.

alter function ledger.make_days(integer, timestamptz) security definer set search_path = pg_catalog, pg_temp;
alter function metering.drop_days(timestamptz) security definer set search_path = pg_catalog, pg_temp;
revoke execute on function ledger.make_days(integer, timestamptz), metering.drop_days(timestamptz) from public;
