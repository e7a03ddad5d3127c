-- A tool costs what its tariff says: a source of costs beside those of the routers.

alter table ledger.usage drop constraint usage_cost_source_check;
alter table ledger.usage add constraint usage_cost_source_check
  check (cost_source in ('billed', 'router_computed', 'router_record', 'tariff', 'pending', 'none'));
