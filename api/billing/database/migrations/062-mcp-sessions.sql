-- Sessions that callers have with the MCP servers of apps. Every replica of the API continues them from here. Of a caller
-- and of their values for variables, only hashes are kept.
create table mcp_sessions (
  -- Of the app's release, the caller, the caller's own session and their values for variables.
  key text primary key,
  -- UID of the HostedApp.
  app text not null,
  caller text not null,
  -- Of the caller and the caller's own session.
  owner text not null,
  -- The id that the app gave the session, and the revision of MCP that both sides speak in it.
  session text not null,
  protocol_version text not null,
  -- Calls in progress: when each ends at the latest, in milliseconds since 1970, by the call's id. A replica that is killed
  -- leaves its calls here, and they count until then.
  calls jsonb not null default '{}',
  -- Each call sets it twice. Without an index on it, such an update changes no index.
  used_at timestamptz not null default now()
) with (fillfactor = 50);
create index mcp_sessions_app on mcp_sessions (app);
create index mcp_sessions_owner on mcp_sessions (owner);
