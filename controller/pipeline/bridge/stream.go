// A stream of server-sent events. It keeps its last events, so that a client that was disconnected continues where it was.
package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	keptEvents = 256
	keptBytes  = 4 << 20
	// Of a stream that its client has whole.
	keptWhenOver = 256 << 10
	// Gateways end connections on which nothing passes.
	pingEvery = 20 * time.Second
)

type event struct {
	number int
	data   []byte
}

type stream struct {
	id     string
	number int
	// Requests without a response; of the session's lock.
	pending int

	mutex     sync.Mutex
	events    []event
	bytes     int
	sent      int
	closed    bool
	connected int
	// Number of the last event that was written to a client.
	delivered int
	// Closed when another connection takes over.
	taken chan struct{}
	// Closed and replaced whenever something changes.
	changed chan struct{}
}

// newStream makes a stream of the session. The caller holds the session's lock, or nobody else knows the session yet.
func (one *session) newStream() *stream {
	one.counter++
	made := &stream{id: strconv.Itoa(one.counter), number: one.counter, changed: make(chan struct{})}
	one.streams[made.id] = made
	return made
}

func (one *stream) write(data []byte) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.sent++
	one.events = append(one.events, event{one.sent, data})
	one.bytes += len(data)
	for len(one.events) > 1 && (len(one.events) > keptEvents || one.bytes > keptBytes) {
		one.bytes -= len(one.events[0].data)
		one.events = one.events[1:]
	}
	one.wake()
}

func (one *stream) close() {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if !one.closed {
		one.closed = true
		one.wake()
	}
}

func (one *stream) wake() {
	close(one.changed)
	one.changed = make(chan struct{})
}

func (one *stream) isConnected() bool {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return one.connected > 0
}

func (one *stream) isOver() bool {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return one.closed
}

// next returns the events after a number, and what to wait for if there are none.
func (one *stream) next(after int) (events []event, closed bool, changed <-chan struct{}) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	for _, each := range one.events {
		if each.number > after {
			events = append(events, each)
		}
	}
	return events, one.closed, one.changed
}

func (one *stream) connect(change int) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.connected += change
}

func (one *stream) markDelivered(number int) {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	one.delivered = max(one.delivered, number)
}

func (one *stream) lastDelivered() int {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	return one.delivered
}

// replace ends the connection that resumed or opened the stream before: it is often one that the client has lost already.
func (one *stream) replace() <-chan struct{} {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.taken != nil {
		close(one.taken)
	}
	one.taken = make(chan struct{})
	return one.taken
}

// trim forgets what a client has received whole, unless it is small.
func (one *stream) trim() {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	if one.closed && one.bytes > keptWhenOver {
		one.events, one.bytes = nil, 0
	}
}

// serve sends the events after a number until the stream is over, the client leaves, or another connection replaces this one.
func (one *stream) serve(response http.ResponseWriter, request *http.Request, after int, replaced <-chan struct{}) {
	one.connect(1)
	defer one.connect(-1)
	header := response.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	response.WriteHeader(http.StatusOK)
	control := http.NewResponseController(response)
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		events, closed, changed := one.next(after)
		for _, each := range events {
			if _, err := fmt.Fprintf(response, "id: %s-%d\nevent: message\ndata: %s\n\n", one.id, each.number, each.data); err != nil {
				return
			}
			after = each.number
			one.markDelivered(after)
		}
		if err := control.Flush(); err != nil {
			return
		}
		if closed && len(events) == 0 {
			one.trim()
			return
		}
		if closed {
			continue
		}
		select {
		case <-changed:
		case <-ping.C:
			if _, err := fmt.Fprint(response, ": ping\n\n"); err != nil {
				return
			}
		case <-replaced:
			return
		case <-request.Context().Done():
			return
		}
	}
}

// parseEventID reads the id of an event: that of its stream and its number.
func parseEventID(text string) (id string, number int, ok bool) {
	id, rest, found := strings.Cut(text, "-")
	number, err := strconv.Atoi(rest)
	return id, number, found && err == nil
}
