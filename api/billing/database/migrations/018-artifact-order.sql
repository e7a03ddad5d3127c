-- The order in which files were kept: a clock is too coarse to say which of two is older, and may step back.

alter table tools.artifact add column nth bigint generated always as identity;
drop index tools.artifact_owner;
create index artifact_owner on tools.artifact (owner, nth);
