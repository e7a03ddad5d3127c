// Speaks streamable HTTP with clients (specification of 2025-06-18, and batches of 2025-03-26), and shows a page at /.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const sessionHeader = "Mcp-Session-Id"

type handler struct {
	config   settings
	sessions *sessions
	about    *about
	proxy    *httputil.ReverseProxy
}

func newHandler(config settings, sessions *sessions, about *about) http.Handler {
	made := &handler{config: config, sessions: sessions, about: about}
	if config.transport == "http" {
		made.proxy = newProxy(config, about)
	}
	return made
}

// newProxy passes requests on to a server that only this container reaches, under the name that such servers accept.
func newProxy(config settings, about *about) *httputil.ReverseProxy {
	host := "127.0.0.1:" + strconv.Itoa(config.upstreamPort)
	upstream := &url.URL{Scheme: "http", Host: host}
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		// Many servers have no page, and a visitor of the app's address looks for one.
		ModifyResponse: func(response *http.Response) error {
			if response.StatusCode == http.StatusNotFound && response.Request.URL.Path == "/" && isRead(response.Request) {
				about.replace(response)
			}
			return nil
		},
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(upstream)
			request.Out.Host = "localhost:" + strconv.Itoa(config.upstreamPort)
			request.Out.Header.Del("Origin")
			if request.In.URL.Path == "/mcp" {
				request.Out.URL.Path = config.upstreamPath
			}
		},
	}
}

func (one *handler) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	header := response.Header()
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Expose-Headers", sessionHeader)
	if request.Method == http.MethodOptions {
		header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		header.Set("Access-Control-Allow-Headers", "*")
		header.Set("Access-Control-Max-Age", "86400")
		response.WriteHeader(http.StatusNoContent)
		return
	}
	switch {
	case request.URL.Path == "/" && isRead(request) && one.proxy == nil:
		one.about.serve(response, request)
	case one.proxy != nil:
		header.Del("Access-Control-Allow-Origin")
		header.Del("Access-Control-Expose-Headers")
		one.proxy.ServeHTTP(response, request)
	case strings.TrimSuffix(request.URL.Path, "/") != "/mcp":
		http.Error(response, "Not found. The MCP endpoint is /mcp.", http.StatusNotFound)
	case request.Method == http.MethodPost:
		one.post(response, request)
	case request.Method == http.MethodGet:
		one.get(response, request)
	case request.Method == http.MethodDelete:
		if found := one.findSession(response, request); found != nil {
			found.end("its client ended it")
			response.WriteHeader(http.StatusNoContent)
		}
	default:
		header.Set("Allow", "GET, POST, DELETE")
		refuse(response, http.StatusMethodNotAllowed, -32000, "Method not allowed.")
	}
}

func isRead(request *http.Request) bool {
	return request.Method == http.MethodGet || request.Method == http.MethodHead
}

func refuse(response http.ResponseWriter, status, code int, text string) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(status)
	_, _ = response.Write(formatError(nil, code, text))
}

// findSession answers the request itself if it names no session.
func (one *handler) findSession(response http.ResponseWriter, request *http.Request) *session {
	id := request.Header.Get(sessionHeader)
	if id == "" {
		refuse(response, http.StatusBadRequest, -32000, "Bad Request: the header Mcp-Session-Id is required. Send initialize first.")
		return nil
	}
	found := one.sessions.find(id)
	if found == nil {
		refuse(response, http.StatusNotFound, -32001, "Session not found. It has ended; send initialize to start another.")
	}
	return found
}

func (one *handler) post(response http.ResponseWriter, request *http.Request) {
	if kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type")); kind != "application/json" {
		refuse(response, http.StatusUnsupportedMediaType, -32000, "Content-Type must be application/json.")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, int64(one.config.messageBytes)))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			refuse(response, http.StatusRequestEntityTooLarge, -32600, "The message is larger than "+strconv.Itoa(one.config.messageBytes)+" bytes.")
		}
		return
	}
	received, err := parseBody(body)
	if err != nil {
		refuse(response, http.StatusBadRequest, -32700, "The body must be a JSON-RPC message.")
		return
	}
	found := one.chooseSession(response, request, received)
	if found == nil {
		return
	}
	one.exchange(response, request, found, received)
}

// parseBody reads one message or a batch. Messages over stdio are one line each, so line breaks between tokens go.
func parseBody(body []byte) ([]incoming, error) {
	var raws []json.RawMessage
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		if err := json.Unmarshal(trimmed, &raws); err != nil {
			return nil, err
		}
	} else {
		raws = []json.RawMessage{trimmed}
	}
	received := make([]incoming, 0, len(raws))
	for _, raw := range raws {
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			return nil, err
		}
		each := incoming{raw: line.Bytes()}
		if err := json.Unmarshal(each.raw, &each.parsed); err != nil {
			return nil, err
		}
		received = append(received, each)
	}
	if len(received) == 0 {
		return nil, errors.New("empty batch")
	}
	return received, nil
}

// chooseSession finds the session of a request, or starts one for `initialize`.
func (one *handler) chooseSession(response http.ResponseWriter, request *http.Request, received []incoming) *session {
	if request.Header.Get(sessionHeader) != "" || received[0].parsed.Method != "initialize" {
		return one.findSession(response, request)
	}
	variables, err := readVariables(request.Header.Get(environmentHeader), one.config)
	if err != nil {
		refuse(response, http.StatusBadRequest, -32602, err.Error())
		return nil
	}
	created, err := one.sessions.create(variables)
	switch {
	case errors.Is(err, errFull):
		response.Header().Set("Retry-After", "30")
		refuse(response, http.StatusServiceUnavailable, -32000, "This server runs at most "+strconv.Itoa(one.config.sessions)+" sessions at the same time. End one with DELETE, or try again later.")
		return nil
	case err != nil:
		logf("", "no session: %v", err)
		refuse(response, http.StatusBadGateway, -32000, "The MCP server does not start.")
		return nil
	}
	response.Header().Set(sessionHeader, created.id)
	return created
}

// environmentHeader carries values of the client for the process of its session: a JSON object. They are written nowhere.
const environmentHeader = "Moorage-Mcp-Environment"

// readVariables takes the names that the start command of the bridge lists, and no others: variables such as NODE_OPTIONS or
// LD_PRELOAD would be code of the client.
func readVariables(header string, config settings) ([]string, error) {
	if header == "" {
		return nil, nil
	}
	if config.transport != "stdio" {
		return nil, errors.New("This server has one process for all sessions, so " + environmentHeader + " cannot set variables of one.")
	}
	values := map[string]string{}
	if json.Unmarshal([]byte(header), &values) != nil {
		return nil, errors.New(environmentHeader + " must be a JSON object whose values are strings.")
	}
	variables := []string{}
	for name, value := range values {
		if !slices.Contains(config.variables, name) {
			return nil, errors.New(environmentHeader + ": this server takes no variable " + strconv.QuoteToASCII(name) + ". It takes: " + strings.Join(config.variables, ", ") + ".")
		}
		if strings.ContainsRune(value, 0) {
			return nil, errors.New(environmentHeader + ": a value must not contain a zero byte.")
		}
		variables = append(variables, name+"="+value)
	}
	return variables, nil
}

func (one *handler) exchange(response http.ResponseWriter, request *http.Request, found *session, received []incoming) {
	var into *stream
	for _, each := range received {
		if each.parsed.isRequest() && into == nil {
			found.mutex.Lock()
			into = found.newStream()
			found.mutex.Unlock()
		}
	}
	if err := found.post(received, into); err != nil {
		logf(found.short, "a message was not taken: %v", err)
		go found.end("it takes no messages")
		refuse(response, http.StatusBadGateway, -32000, "The MCP server does not take the message.")
		return
	}
	switch {
	case into == nil:
		response.WriteHeader(http.StatusAccepted)
	case acceptsEvents(request):
		into.serve(response, request, 0, nil)
	default:
		respondAtOnce(response, request, into, len(received) > 1)
	}
	found.touch()
}

func acceptsEvents(request *http.Request) bool {
	accept := strings.Join(request.Header.Values("Accept"), ",")
	return accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*")
}

// respondAtOnce waits for the responses, for clients that take no events.
func respondAtOnce(response http.ResponseWriter, request *http.Request, from *stream, isBatch bool) {
	from.connect(1)
	defer from.connect(-1)
	responses := []json.RawMessage{}
	for after, isOver := 0, false; !isOver; {
		events, closed, changed := from.next(after)
		for _, each := range events {
			var parsed message
			if json.Unmarshal(each.data, &parsed) == nil && parsed.isResponse() {
				responses = append(responses, each.data)
			}
			after = each.number
		}
		if isOver = closed; isOver {
			break
		}
		select {
		case <-changed:
		case <-request.Context().Done():
			return
		}
	}
	from.trim()
	response.Header().Set("Content-Type", "application/json")
	if !isBatch && len(responses) == 1 {
		_, _ = response.Write(responses[0])
		return
	}
	_ = json.NewEncoder(response).Encode(responses)
}

// get opens the standing stream, or resumes the one of the last event that a client has.
func (one *handler) get(response http.ResponseWriter, request *http.Request) {
	if request.Header.Get(sessionHeader) == "" {
		response.Header().Set("Allow", "POST")
		refuse(response, http.StatusMethodNotAllowed, -32000, "Method not allowed without a session. Send initialize by POST.")
		return
	}
	found := one.findSession(response, request)
	if found == nil {
		return
	}
	if !acceptsEvents(request) {
		refuse(response, http.StatusNotAcceptable, -32000, "Accept must include text/event-stream.")
		return
	}
	found.mutex.Lock()
	target, after := found.standing, found.standing.lastDelivered()
	if id, number, ok := parseEventID(request.Header.Get("Last-Event-ID")); ok {
		if known := found.streams[id]; known != nil {
			target, after = known, number
		}
	}
	isStanding := target == found.standing
	if isStanding {
		found.left = false
	}
	replaced := target.replace()
	found.lastUse = time.Now()
	found.mutex.Unlock()

	target.serve(response, request, after, replaced)

	found.mutex.Lock()
	found.lastUse = time.Now()
	found.left = isStanding && !target.isConnected()
	found.mutex.Unlock()
}
