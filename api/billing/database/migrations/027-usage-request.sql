-- A use names the request that made it, as its sender got it in X-Request-Id: by it he finds what the request cost.

alter table ledger.usage add column request text;
create index usage_request on ledger.usage (caller, request) where request is not null;

create or replace function ledger.record_usage(p_id text, p_usage jsonb, p_cost numeric, p_source text, p_at timestamptz) returns boolean language plpgsql as $$
begin
  insert into ledger.usage (id, kind, at, caller, app, model, tool, tokens_in, tokens_out, latency_ms, cost, cost_source, price_version, request)
    values (p_id, p_usage ->> 'kind', p_at, p_usage ->> 'caller', p_usage ->> 'app', p_usage ->> 'model', p_usage ->> 'tool',
      (p_usage ->> 'tokens_in')::integer, (p_usage ->> 'tokens_out')::integer, (p_usage ->> 'latency_ms')::integer, p_cost, p_source,
      p_usage ->> 'price_version', left(p_usage ->> 'request', 64))
    on conflict (at, id) do nothing;
  if found then return true; end if;
  update ledger.usage set cost = p_cost, cost_source = p_source,
      tokens_in = coalesce((p_usage ->> 'tokens_in')::integer, tokens_in), tokens_out = coalesce((p_usage ->> 'tokens_out')::integer, tokens_out)
    where at = p_at and id = p_id and cost_source = 'pending' and p_cost is not null;
  return false;
end $$;
