// Serves streamable HTTP at /mcp in front of an MCP server that speaks stdio or SSE, or that only its own container reaches:
//
//	mcp-bridge --transport stdio|sse|http [--upstream-port N] [--upstream-path PATH] [--session-variable NAME]... -- COMMAND ARGUMENTS...
//
// It is the first process of the app's container, so every process that loses its parent becomes its child, and all end with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type settings struct {
	transport    string
	upstreamPort int
	upstreamPath string
	command      []string
	// Names of the variables that a client may set for its session.
	variables []string
	port      int
	// Sessions at the same time.
	sessions int
	// Bytes of one message, in either direction.
	messageBytes int
	// After this long without a message, a session ends to which no stream is open.
	idle time.Duration
	// The same for one whose standing stream was closed: its client has gone.
	gone time.Duration
	// The same for one with an open stream.
	quiet time.Duration
	// How long the server may take until it answers the first request.
	start time.Duration
	// How long a process has between the end of its input, SIGTERM and SIGKILL, each.
	grace time.Duration
}

func main() {
	config, err := readSettings(os.Args[1:])
	if err == nil {
		err = run(config)
	}
	if err != nil {
		logf("", "%v", err)
		os.Exit(1)
	}
}

func readSettings(arguments []string) (settings, error) {
	flags := flag.NewFlagSet("mcp-bridge", flag.ContinueOnError)
	config := settings{}
	flags.StringVar(&config.transport, "transport", "stdio", "what the server speaks: stdio, sse or http")
	flags.IntVar(&config.upstreamPort, "upstream-port", 8000, "where the server listens, unless it speaks stdio")
	flags.StringVar(&config.upstreamPath, "upstream-path", "/mcp", "path of its endpoint, unless it speaks stdio")
	flags.Func("session-variable", "a variable that clients may set for their session, over stdio", func(name string) error {
		config.variables = append(config.variables, name)
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return config, err
	}
	config.command = flags.Args()
	if len(config.command) == 0 {
		return config, errors.New("no command is given that starts the MCP server")
	}
	config.port = readNumber("PORT", 8080)
	config.sessions = readNumber("MCP_BRIDGE_SESSIONS", 32)
	config.messageBytes = readNumber("MCP_BRIDGE_MESSAGE_BYTES", 8<<20)
	config.idle = readSeconds("MCP_BRIDGE_IDLE_SECONDS", 600)
	config.gone = readSeconds("MCP_BRIDGE_GONE_SECONDS", 60)
	config.quiet = readSeconds("MCP_BRIDGE_QUIET_SECONDS", 3600)
	config.start = readSeconds("MCP_BRIDGE_START_SECONDS", 60)
	config.grace = readSeconds("MCP_BRIDGE_GRACE_SECONDS", 2)
	return config, nil
}

func readNumber(name string, otherwise int) int {
	if value, err := strconv.Atoi(os.Getenv(name)); err == nil && value > 0 {
		return value
	}
	return otherwise
}

func readSeconds(name string, otherwise int) time.Duration {
	return time.Duration(readNumber(name, otherwise)) * time.Second
}

func run(config settings) error {
	processes := newProcesses()
	stopped := make(chan os.Signal, 2)
	signal.Notify(stopped, syscall.SIGTERM, syscall.SIGINT)

	upstream, err := startUpstream(config, processes)
	if err != nil {
		return err
	}
	open := func(id string, variables []string) (link, error) {
		return openProcess(config, processes, id, variables)
	}
	if config.transport == "sse" {
		open = func(string, []string) (link, error) { return openEvents(config) }
	}
	sessions := newSessions(config, open)
	about, err := probe(config, sessions, upstream)
	if err != nil {
		upstream.end(config.grace)
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(config.port)))
	if err != nil {
		sessions.endAll()
		upstream.end(config.grace)
		return err
	}
	logf("", "%s answers over %s with %d tools; listening on port %d", about.name(), config.transport, len(about.Tools), config.port)

	server := &http.Server{
		Handler:           newHandler(config, sessions, about),
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err = <-failed:
	case <-upstream.ended():
		err = fmt.Errorf("the server ended %s", upstream.describeEnd())
	case <-stopped:
		err = nil
	}
	ending, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	sessions.endAll()
	_ = server.Shutdown(ending)
	upstream.end(config.grace)
	return err
}

// startUpstream starts the one process of a server that listens itself. Over stdio there is none.
func startUpstream(config settings, processes *processes) (*process, error) {
	if config.transport == "stdio" {
		return nil, nil
	}
	variables := append(listVariables(), "PORT="+strconv.Itoa(config.upstreamPort))
	return processes.start(config.command, variables, "", false)
}

// listVariables returns the environment for a server, without what is meant for the bridge. A server over stdio that reads PORT
// would listen there instead.
func listVariables() []string {
	kept := []string{}
	for _, each := range os.Environ() {
		if !strings.HasPrefix(each, "MCP_BRIDGE_") && !strings.HasPrefix(each, "PORT=") {
			kept = append(kept, each)
		}
	}
	return kept
}

// replaceVariables adds variables to an environment. A program takes the first of two with the same name.
func replaceVariables(environment, variables []string) []string {
	kept := []string{}
	for _, each := range environment {
		name, _, _ := strings.Cut(each, "=")
		if !slices.ContainsFunc(variables, func(other string) bool { return strings.HasPrefix(other, name+"=") }) {
			kept = append(kept, each)
		}
	}
	return append(kept, variables...)
}

// logf writes a line to the container's log, with the short id of the session that it is about.
func logf(id, format string, values ...any) {
	prefix := "mcp-bridge"
	if id != "" {
		prefix = "[" + id + "]"
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", prefix, fmt.Sprintf(format, values...))
}
