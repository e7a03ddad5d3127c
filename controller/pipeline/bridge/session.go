// Keeps the sessions: each has a link to its server, the requests that wait for a response, and the streams to its client.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// link carries the messages of one session to and from its server, each as one line of JSON.
type link interface {
	send(message []byte) error
	// messages is closed when the server has gone.
	messages() <-chan []byte
	// reason says why it has gone.
	reason() string
	close()
}

// message is the part of a JSON-RPC message that its way depends on. The rest passes unread.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		ProgressToken json.RawMessage `json:"progressToken"`
	} `json:"params"`
}

func (one message) isRequest() bool  { return one.Method != "" && len(one.ID) > 0 }
func (one message) isResponse() bool { return one.Method == "" && len(one.ID) > 0 }

var errFull = errors.New("too many sessions")

type sessions struct {
	config settings
	open   func(id string, variables []string) (link, error)
	mutex  sync.Mutex
	byID   map[string]*session
	// Sessions that are ended, until no process of theirs is left.
	ending sync.WaitGroup
}

func newSessions(config settings, open func(id string, variables []string) (link, error)) *sessions {
	return &sessions{config: config, open: open, byID: map[string]*session{}}
}

func (all *sessions) find(id string) *session {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	return all.byID[id]
}

// create starts a session, whose process has these variables, too. At the limit, the one ends whose client has been away for the longest time.
func (all *sessions) create(variables []string) (*session, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	id := hex.EncodeToString(random)
	found := &session{
		all: all, id: id, short: id[:6],
		waiting: map[string]*stream{}, tokens: map[string]*stream{}, streams: map[string]*stream{},
		over: make(chan struct{}), lastUse: time.Now(),
	}
	all.mutex.Lock()
	if len(all.byID) >= all.config.sessions && !all.makeRoom() {
		all.mutex.Unlock()
		return nil, errFull
	}
	all.byID[id] = found
	all.mutex.Unlock()
	connected, err := all.open(found.short, variables)
	if err != nil {
		all.remove(id)
		return nil, err
	}
	found.link = connected
	found.standing = found.newStream()
	logf(found.short, "session started")
	go found.deliver()
	go found.watch()
	return found, nil
}

func (all *sessions) remove(id string) {
	all.mutex.Lock()
	defer all.mutex.Unlock()
	delete(all.byID, id)
}

const awayBeforeRoom = 30 * time.Second

// makeRoom ends a session that nobody uses. The caller holds the lock.
func (all *sessions) makeRoom() bool {
	var oldest *session
	for _, each := range all.byID {
		if since, away := each.away(); away && since > awayBeforeRoom && (oldest == nil || each.lastUse.Before(oldest.lastUse)) {
			oldest = each
		}
	}
	if oldest == nil {
		return false
	}
	delete(all.byID, oldest.id)
	go oldest.end("another client needs its place")
	return true
}

func (all *sessions) endAll() {
	all.mutex.Lock()
	open := make([]*session, 0, len(all.byID))
	for _, each := range all.byID {
		open = append(open, each)
	}
	all.mutex.Unlock()
	for _, each := range open {
		go each.end("the app stops")
	}
	for _, each := range open {
		<-each.over
	}
	all.ending.Wait()
}

type session struct {
	all   *sessions
	id    string
	short string
	link  link

	mutex   sync.Mutex
	lastUse time.Time
	// Streams of requests, by the id of the request.
	waiting map[string]*stream
	// The same by the progress token of the request.
	tokens map[string]*stream
	// All that can be resumed, by their own id.
	streams map[string]*stream
	// What belongs to no request.
	standing *stream
	// The newest stream of a request.
	newest  *stream
	counter int
	// The client closed its standing stream.
	left bool
	// Why the server has gone.
	failure string

	ended sync.Once
	over  chan struct{}
}

// away returns how long ago the session was used, and whether no client is connected.
func (one *session) away() (time.Duration, bool) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	connected := false
	for _, each := range one.streams {
		connected = connected || each.isConnected()
	}
	return time.Since(one.lastUse), !connected
}

func (one *session) touch() {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.lastUse = time.Now()
}

// watch ends the session when it is not used.
func (one *session) watch() {
	config := one.all.config
	ticker := time.NewTicker(min(config.gone, config.idle) / 4)
	defer ticker.Stop()
	for {
		select {
		case <-one.over:
			return
		case <-ticker.C:
		}
		since, away := one.away()
		one.mutex.Lock()
		left := one.left
		one.mutex.Unlock()
		switch {
		case away && left && since > config.gone:
			one.end("its client has gone")
		case away && since > config.idle:
			one.end("it was not used")
		case since > config.quiet:
			one.end("it was not used")
		}
	}
}

// incoming is a message of the client, as it came and as far as it is read.
type incoming struct {
	raw    []byte
	parsed message
}

// post passes messages of the client on. Requests get a stream, on which their responses arrive.
func (one *session) post(received []incoming, into *stream) error {
	one.mutex.Lock()
	one.lastUse = time.Now()
	// All of a batch first: the stream is over when nothing is pending.
	for _, each := range received {
		if !each.parsed.isRequest() {
			continue
		}
		one.waiting[string(each.parsed.ID)] = into
		into.pending++
		one.newest = into
		if token := each.parsed.Params.Meta.ProgressToken; len(token) > 0 {
			one.tokens[string(token)] = into
		}
	}
	one.mutex.Unlock()
	for _, each := range received {
		if err := one.link.send(each.raw); err != nil {
			return err
		}
	}
	return nil
}

// deliver passes the server's messages on until it ends.
func (one *session) deliver() {
	for raw := range one.link.messages() {
		var parsed message
		if err := json.Unmarshal(raw, &parsed); err != nil {
			// Many servers also log to standard output.
			logf(one.short, "%s", bytes.TrimSpace(raw))
			continue
		}
		one.mutex.Lock()
		one.lastUse = time.Now()
		target := one.chooseStream(parsed)
		isLast := false
		if parsed.isResponse() && target != one.standing {
			delete(one.waiting, string(parsed.ID))
			target.pending--
			isLast = target.pending <= 0
		}
		target.write(raw)
		if isLast {
			one.finish(target)
		}
		one.mutex.Unlock()
	}
	one.fail(one.link.reason())
	one.end(one.link.reason())
}

// chooseStream finds the stream that a message belongs to. Over stdio, nothing says which request a server's own request or
// notification belongs to, except for progress. If one request waits, it is that one's. The caller holds the lock.
func (one *session) chooseStream(parsed message) *stream {
	if parsed.isResponse() {
		if found := one.waiting[string(parsed.ID)]; found != nil {
			return found
		}
		return one.standing
	}
	if token := parsed.Params.ProgressToken; len(token) > 0 {
		if found := one.tokens[string(token)]; found != nil && found.pending > 0 {
			return found
		}
	}
	if len(one.waiting) == 1 || (len(one.waiting) > 0 && !one.standing.isConnected()) {
		for _, each := range one.waiting {
			if len(one.waiting) == 1 || each == one.newest {
				return each
			}
		}
		for _, each := range one.waiting {
			return each
		}
	}
	return one.standing
}

// finish closes a stream after its last response. It can be resumed for as long as the session keeps few of them. The caller
// holds the lock.
func (one *session) finish(target *stream) {
	target.close()
	for token, each := range one.tokens {
		if each == target {
			delete(one.tokens, token)
		}
	}
	if target == one.newest {
		one.newest = nil
	}
	one.forgetOld()
}

const keptStreams = 8

func (one *session) forgetOld() {
	for len(one.streams) > keptStreams {
		var oldest *stream
		for _, each := range one.streams {
			if each.isOver() && !each.isConnected() && (oldest == nil || each.number < oldest.number) {
				oldest = each
			}
		}
		if oldest == nil {
			return
		}
		delete(one.streams, oldest.id)
	}
}

// fail answers every request that still waits.
func (one *session) fail(reason string) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.failure == "" {
		one.failure = reason
	}
	for id, target := range one.waiting {
		target.write(formatError(json.RawMessage(id), -32000, "The MCP server ended before it answered: "+reason+"."))
		target.close()
	}
	one.waiting = map[string]*stream{}
}

// end ends the session with its process. It returns when no process of it is left.
func (one *session) end(reason string) {
	one.ended.Do(func() {
		one.all.ending.Add(1)
		defer one.all.ending.Done()
		one.all.remove(one.id)
		logf(one.short, "session ended: %s", reason)
		one.link.close()
		one.fail("the session was ended")
		one.mutex.Lock()
		for _, each := range one.streams {
			each.close()
		}
		one.mutex.Unlock()
		close(one.over)
	})
	<-one.over
}

type rpcError struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func formatError(id json.RawMessage, code int, text string) []byte {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	failure := rpcError{Version: "2.0", ID: id}
	failure.Error.Code, failure.Error.Message = code, text
	raw, _ := json.Marshal(failure)
	return raw
}
