// Starts the server once before anything is served, so that a server that does not start is never live, and shows what it answered.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type about struct {
	Info struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"serverInfo"`
	Instructions string `json:"instructions,omitempty"`
	Capabilities struct {
		Tools *struct{} `json:"tools"`
	} `json:"capabilities"`
	Tools []tool `json:"tools"`
}

type tool struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
}

func (one *about) name() string {
	if one.Info.Title != "" {
		return one.Info.Title
	}
	if one.Info.Name != "" {
		return one.Info.Name
	}
	return "The server"
}

const (
	initialize  = `{"jsonrpc":"2.0","id":"about","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"moorage","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listTools   = `{"jsonrpc":"2.0","id":"tools","method":"tools/list","params":{}}`
	// A server may need longer than a client waits for its tools, and is listed without them.
	toolsLimit = 20 * time.Second
)

// probe initializes a session and ends it. A server that listens itself may need a while until it does.
func probe(config settings, sessions *sessions, upstream *process) (*about, error) {
	if config.transport == "http" {
		return probeEndpoint(config, upstream)
	}
	deadline := time.Now().Add(config.start)
	for {
		found, err := sessions.create(nil)
		if err == nil {
			defer found.end("the server was asked for its tools")
			return ask(config, found, deadline)
		}
		select {
		case <-upstream.ended():
			return nil, fmt.Errorf("the server ended %s before it listened on port %d", upstream.describeEnd(), config.upstreamPort)
		case <-time.After(100 * time.Millisecond):
		}
		if upstream == nil || time.Now().After(deadline) {
			return nil, err
		}
	}
}

func ask(config settings, with *session, deadline time.Time) (*about, error) {
	found := &about{Tools: []tool{}}
	if err := request(with, initialize, found, time.Until(deadline)); err != nil {
		return nil, fmt.Errorf("the MCP server does not answer initialize over %s: %w", config.transport, err)
	}
	_ = with.post([]incoming{{raw: []byte(initialized)}}, nil)
	if found.Capabilities.Tools != nil {
		if err := request(with, listTools, found, toolsLimit); err != nil {
			logf("", "its tools are not known: %v", err)
		}
	}
	return found, nil
}

// request sends a request of the bridge itself and reads the result of its response.
func request(with *session, raw string, into any, limit time.Duration) error {
	var parsed message
	_ = json.Unmarshal([]byte(raw), &parsed)
	with.mutex.Lock()
	stream := with.newStream()
	with.mutex.Unlock()
	if err := with.post([]incoming{{[]byte(raw), parsed}}, stream); err != nil {
		return errors.New(with.link.reason())
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		events, closed, changed := stream.next(0)
		for _, each := range events {
			var answer struct {
				message
				Result json.RawMessage `json:"result"`
				Error  *struct {
					Message string `json:"message"`
				} `json:"error"`
			}
			if json.Unmarshal(each.data, &answer) != nil || !answer.isResponse() {
				continue
			}
			if answer.Error != nil {
				return errors.New(with.explain(answer.Error.Message))
			}
			return json.Unmarshal(answer.Result, into)
		}
		if closed {
			return errors.New("it ended")
		}
		select {
		case <-changed:
		case <-timer.C:
			return fmt.Errorf("it was silent for %v", limit.Round(time.Second))
		}
	}
}

// explain prefers the reason why a server has gone to what a client is answered then.
func (one *session) explain(answer string) string {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.failure != "" {
		return one.failure
	}
	return answer
}

// probeEndpoint waits until a server that speaks streamable HTTP itself answers initialize, in any of its two forms.
func probeEndpoint(config settings, upstream *process) (*about, error) {
	address := fmt.Sprintf("http://127.0.0.1:%d%s", config.upstreamPort, config.upstreamPath)
	deadline := time.Now().Add(config.start)
	for {
		post, err := http.NewRequest(http.MethodPost, address, strings.NewReader(initialize))
		if err != nil {
			return nil, err
		}
		post.Header.Set("Content-Type", "application/json")
		post.Header.Set("Accept", "application/json, text/event-stream")
		response, err := http.DefaultClient.Do(post)
		if err == nil {
			response.Body.Close()
			if id := response.Header.Get(sessionHeader); id != "" {
				endSession(address, id)
			}
			// Some ask for credentials first.
			isClosed := response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden
			if response.StatusCode != http.StatusOK && !isClosed {
				return nil, fmt.Errorf("the MCP server responds to initialize at %s with HTTP %d", config.upstreamPath, response.StatusCode)
			}
			return &about{Tools: []tool{}}, nil
		}
		select {
		case <-upstream.ended():
			return nil, fmt.Errorf("the server ended %s before it listened on port %d", upstream.describeEnd(), config.upstreamPort)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the MCP server does not listen on port %d: %w", config.upstreamPort, err)
		}
	}
}

func endSession(address, id string) {
	if request, err := http.NewRequest(http.MethodDelete, address, nil); err == nil {
		request.Header.Set(sessionHeader, id)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}
}

const (
	pageStart = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%[1]s</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}dt{font-weight:600;margin-top:.8rem}dd{margin:0;white-space:pre-line}</style>
<h1>%[1]s</h1>
<p>This is an MCP server. Its endpoint is <code>/mcp</code> (streamable HTTP).</p>
`
	pageTool = "<dt><code>%s</code></dt><dd>%s</dd>\n"
)

func (one *about) serve(response http.ResponseWriter, request *http.Request) {
	if accept := request.Header.Get("Accept"); strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html") {
		response.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(response).Encode(one)
		return
	}
	response.Header().Set("Content-Type", pageType)
	_, _ = io.WriteString(response, one.format())
}

// replace discards a response and sends the page.
func (one *about) replace(response *http.Response) {
	response.Body.Close()
	text := one.format()
	response.StatusCode, response.Status = http.StatusOK, "200 OK"
	response.ContentLength = int64(len(text))
	response.Header = http.Header{"Content-Type": {pageType}, "Content-Length": {strconv.Itoa(len(text))}}
	response.Body = io.NopCloser(strings.NewReader(text))
}

const pageType = "text/html; charset=utf-8"

func (one *about) format() string {
	var text strings.Builder
	fmt.Fprintf(&text, pageStart, html.EscapeString(one.name()))
	if len(one.Tools) > 0 {
		text.WriteString("<h2>Tools</h2><dl>\n")
		for _, each := range one.Tools {
			fmt.Fprintf(&text, pageTool, html.EscapeString(each.Name), html.EscapeString(each.Description))
		}
		text.WriteString("</dl>\n")
	}
	text.WriteString("</html>\n")
	return text.String()
}
