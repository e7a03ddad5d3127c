// Links to servers: a process with its standard input and output, or two HTTP connections to a server that speaks SSE.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	queued = 64
	// A server that does not read its input for this long has hung.
	writeLimit = 30 * time.Second
)

type processLink struct {
	process *process
	config  settings
	mutex   sync.Mutex
	lines   chan []byte
	problem string
}

func openProcess(config settings, processes *processes, id string, variables []string) (link, error) {
	started, err := processes.start(config.command, replaceVariables(listVariables(), variables), id, true)
	if err != nil {
		return nil, err
	}
	made := &processLink{process: started, config: config, lines: make(chan []byte, queued)}
	go made.read()
	return made, nil
}

func (one *processLink) send(raw []byte) error {
	one.mutex.Lock()
	defer one.mutex.Unlock()
	_ = one.process.input.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err := one.process.input.Write(append(raw, '\n'))
	return err
}

func (one *processLink) read() {
	defer close(one.lines)
	reader := bufio.NewReaderSize(one.process.output, 64<<10)
	for {
		line, err := readLine(reader, one.config.messageBytes)
		if errors.Is(err, errTooLong) {
			one.problem = fmt.Sprintf("it sent a message of more than %d bytes", one.config.messageBytes)
			return
		}
		if len(bytes.TrimSpace(line)) > 0 {
			one.lines <- line
		}
		if err != nil {
			return
		}
	}
}

var errTooLong = errors.New("line too long")

func readLine(reader *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > limit {
			return nil, errTooLong
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

func (one *processLink) messages() <-chan []byte { return one.lines }

func (one *processLink) reason() string {
	if one.problem != "" {
		return one.problem
	}
	if one.process.wait(one.config.grace) {
		return "its process ended " + one.process.describeEnd()
	}
	return "its process closed its standard output"
}

func (one *processLink) close() {
	one.process.end(one.config.grace)
	// A reader that is left gets the end of the channel.
	for range one.lines {
	}
}

// eventsLink speaks the HTTP+SSE transport of the specification's first version.
type eventsLink struct {
	endpoint string
	config   settings
	cancel   context.CancelFunc
	lines    chan []byte
	problem  string
}

func openEvents(config settings) (link, error) {
	ctx, cancel := context.WithCancel(context.Background())
	base := fmt.Sprintf("http://127.0.0.1:%d", config.upstreamPort)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+config.upstreamPath, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		cancel()
		return nil, fmt.Errorf("GET %s responds with HTTP %d", config.upstreamPath, response.StatusCode)
	}
	made := &eventsLink{config: config, cancel: cancel, lines: make(chan []byte, queued)}
	endpoint := make(chan string, 1)
	go made.read(response.Body, endpoint)
	select {
	case path, ok := <-endpoint:
		if made.endpoint = resolve(base+config.upstreamPath, path); ok && made.endpoint != "" {
			return made, nil
		}
	case <-time.After(config.start):
	}
	cancel()
	return nil, fmt.Errorf("GET %s names no endpoint for messages", config.upstreamPath)
}

// resolve reads the address for messages, which stays on the server.
func resolve(base, path string) string {
	from, err := url.Parse(base)
	if err != nil {
		return ""
	}
	to, err := from.Parse(strings.TrimSpace(path))
	if err != nil {
		return ""
	}
	to.Scheme, to.Host = from.Scheme, from.Host
	return to.String()
}

func (one *eventsLink) read(body io.ReadCloser, endpoint chan<- string) {
	defer close(one.lines)
	defer body.Close()
	defer close(endpoint)
	reader := bufio.NewReaderSize(body, 64<<10)
	name, data := "", []byte(nil)
	for {
		line, err := readLine(reader, one.config.messageBytes)
		if err != nil {
			if errors.Is(err, errTooLong) {
				one.problem = fmt.Sprintf("it sent a message of more than %d bytes", one.config.messageBytes)
			}
			return
		}
		field, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case len(line) == 0 && name == "endpoint":
			select {
			case endpoint <- string(data):
			default:
			}
			name, data = "", nil
		case len(line) == 0:
			if len(data) > 0 {
				one.lines <- data
			}
			name, data = "", nil
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value...)
		}
	}
}

func (one *eventsLink) send(raw []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, one.endpoint, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
	if response.StatusCode >= 300 {
		return fmt.Errorf("the server responds with HTTP %d", response.StatusCode)
	}
	return nil
}

func (one *eventsLink) messages() <-chan []byte { return one.lines }

func (one *eventsLink) reason() string {
	if one.problem != "" {
		return one.problem
	}
	return "the server closed its stream"
}

func (one *eventsLink) close() {
	one.cancel()
	for range one.lines {
	}
}
