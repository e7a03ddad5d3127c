// Starts processes in sessions of the kernel, reaps every child, and ends a process with all of its descendants.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// marker is the variable that identifies descendants of a session, also those that have left its process group.
const marker = "MOORAGE_MCP_SESSION"

const setChildSubreaper = 36

// processes starts and reaps. All starts happen on one thread that never ends, because the signal that a child gets at the death
// of its parent comes at the end of the thread that started it.
type processes struct {
	mutex    sync.Mutex
	running  map[int]*process
	requests chan func()
}

type process struct {
	pid    int
	id     string
	input  *os.File
	output *os.File
	done   chan struct{}
	status syscall.WaitStatus
	once   sync.Once
}

func newProcesses() *processes {
	all := &processes{running: map[int]*process{}, requests: make(chan func())}
	// Without a PID namespace, orphans would go to the init of the machine.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go all.reap(ended)
	go func() {
		runtime.LockOSThread()
		for request := range all.requests {
			request()
		}
	}()
	return all
}

// reap waits for every child. Those that were not started here are orphans of a server.
func (all *processes) reap(ended <-chan os.Signal) {
	for range ended {
		for {
			var status syscall.WaitStatus
			all.mutex.Lock()
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			found := all.running[pid]
			delete(all.running, pid)
			all.mutex.Unlock()
			if err != nil || pid <= 0 {
				break
			}
			if found != nil {
				found.status = status
				close(found.done)
			}
		}
	}
}

// start runs a command in a session of the kernel. What it writes to standard error goes to the log; with pipes, its standard
// input and output are the caller's, and otherwise its output goes to the log too.
func (all *processes) start(command, variables []string, id string, pipes bool) (*process, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fmt.Errorf("the start command %q was not found: %w", command[0], err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	errorOut, errorIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer errorIn.Close()
	found := &process{id: id, done: make(chan struct{})}
	files := []uintptr{}
	closing := []*os.File{}
	if pipes {
		in, input, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		output, out, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		found.input, found.output = input, output
		closing = append(closing, in, out)
		files = append(files, in.Fd(), out.Fd())
	} else {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		closing = append(closing, null)
		files = append(files, null.Fd(), errorIn.Fd())
	}
	files = append(files, errorIn.Fd())
	attributes := &syscall.ProcAttr{
		Env:   append(variables, marker+"="+id),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	started := make(chan error, 1)
	all.requests <- func() {
		all.mutex.Lock()
		defer all.mutex.Unlock()
		pid, err := syscall.ForkExec(path, command, attributes)
		if err == nil {
			found.pid = pid
			all.running[pid] = found
		}
		started <- err
	}
	err = <-started
	for _, file := range closing {
		file.Close()
	}
	if err != nil {
		errorOut.Close()
		found.closePipes()
		return nil, fmt.Errorf("the start command %q does not run: %w", command[0], err)
	}
	go copyLines(id, errorOut)
	return found, nil
}

const longestLine = 8 << 10

// copyLines writes what a server says to the log, line by line.
func copyLines(id string, from io.ReadCloser) {
	defer from.Close()
	reader := bufio.NewReaderSize(from, longestLine)
	for {
		line, err := reader.ReadSlice('\n')
		if text := strings.TrimRight(string(line), "\r\n"); text != "" {
			if id == "" {
				fmt.Fprintln(os.Stderr, text)
			} else {
				logf(id, "%s", text)
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

func (one *process) closePipes() {
	if one.input != nil {
		one.input.Close()
	}
	if one.output != nil {
		one.output.Close()
	}
}

func (one *process) ended() <-chan struct{} {
	if one == nil {
		return nil
	}
	return one.done
}

func (one *process) describeEnd() string {
	if one.status.Signaled() {
		return fmt.Sprintf("by signal %v", one.status.Signal())
	}
	return fmt.Sprintf("with exit code %d", one.status.ExitStatus())
}

// end ends a process and its descendants as the specification of stdio asks: the end of its input, SIGTERM, SIGKILL.
func (one *process) end(grace time.Duration) {
	if one == nil {
		return
	}
	one.once.Do(func() {
		if one.input != nil {
			one.input.Close()
		}
		if one.input == nil || !one.wait(grace/2) {
			one.signal(syscall.SIGTERM)
			one.wait(grace)
		}
		// Some are left even if the process itself has ended, such as a browser that it started.
		for attempt := 0; attempt < 200 && one.signal(syscall.SIGKILL) > 0; attempt++ {
			time.Sleep(10 * time.Millisecond)
		}
		one.closePipes()
	})
}

func (one *process) wait(limit time.Duration) bool {
	select {
	case <-one.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// signal sends a signal to the process and all descendants that are left, and returns how many there were.
func (one *process) signal(sent syscall.Signal) int {
	members := one.listMembers()
	for _, pid := range members {
		_ = syscall.Kill(pid, sent)
	}
	return len(members)
}

// listMembers finds the process, its descendants, and what has its marker, among all processes of the container.
func (one *process) listMembers() []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	parents := map[int]int{}
	found := map[int]bool{}
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(name))
		parent, session, ok := readStat(name)
		if !ok || pid == os.Getpid() {
			continue
		}
		parents[pid] = parent
		found[pid] = pid == one.pid || session == one.pid || hasMarker(name, one.id)
	}
	members := []int{}
	for pid := range parents {
		for ancestor, steps := pid, 0; steps < 64 && ancestor > 0; ancestor, steps = parents[ancestor], steps+1 {
			if found[ancestor] {
				members = append(members, pid)
				break
			}
		}
	}
	return members
}

// readStat reads parent and session of a process. Zombies have ended already.
func readStat(folder string) (parent, session int, ok bool) {
	text, err := os.ReadFile(folder + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name is in brackets and may have any characters.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 4 || fields[0] == "Z" || fields[0] == "X" {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(fields[1])
	session, _ = strconv.Atoi(fields[3])
	return parent, session, true
}

func hasMarker(folder, id string) bool {
	if id == "" {
		return false
	}
	text, err := os.ReadFile(folder + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+marker+"="+id+"\x00"))
}
