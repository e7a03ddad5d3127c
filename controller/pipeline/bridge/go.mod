module moorage.dev/mcp-bridge

go 1.24
