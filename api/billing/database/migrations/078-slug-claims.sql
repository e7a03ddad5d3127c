-- Slugs that are about to be taken, by a submission or a rename, so that one of them gets each. What has one is in the cluster:
-- a claim lasts until every replica of the API has seen it there.
create table author.slug_claim (
  slug text primary key,
  -- Hash of the repository that is submitted, or UID of the HostedApp that is renamed.
  holder text not null,
  expires_at timestamptz not null
);
