// Calls every operation of a client that oapi-codegen generated: main URL CALLS.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	"clients/client"
)

type call struct {
	ID     string                     `json:"id"`
	Path   string                     `json:"path"`
	Params map[string]json.RawMessage `json:"params"`
	Query  json.RawMessage            `json:"fields"`
	Body   json.RawMessage            `json:"body"`
}

type result struct {
	ID     string `json:"id"`
	Status int    `json:"status"`
	// Untyped: the body was sent as it is, since the generated type has a union within a union, which has no decoder.
	Untyped bool `json:"untyped"`
}

func check(err error, about string) {
	if err != nil {
		fmt.Fprintln(os.Stderr, about+":", err)
		os.Exit(1)
	}
}

// values are the path parameters in the order in which they stand in the path, as the generated functions take them.
func values(one call) []json.RawMessage {
	var found []json.RawMessage
	for _, part := range strings.Split(one.Path, "/") {
		if open := strings.Index(part, "{"); open >= 0 {
			found = append(found, one.Params[part[open+1:strings.Index(part, "}")]])
		}
	}
	return found
}

func decoded(form reflect.Type, text json.RawMessage, about string) reflect.Value {
	made := reflect.New(form)
	check(json.Unmarshal(text, made.Interface()), about)
	return made.Elem()
}

func main() {
	text, err := os.ReadFile(os.Args[2])
	check(err, "calls")
	var calls []call
	check(json.Unmarshal(text, &calls), "calls")
	made, err := client.NewClient(os.Args[1])
	check(err, "client")
	var results []result
	for _, one := range calls {
		method := reflect.ValueOf(made).MethodByName(strings.ToUpper(one.ID[:1]) + one.ID[1:])
		if !method.IsValid() {
			check(fmt.Errorf("no function"), one.ID)
		}
		form, path, untyped := method.Type(), values(one), false
		if body := form.In(form.NumIn() - 2); len(one.Body) > 0 && json.Unmarshal(one.Body, reflect.New(body).Interface()) != nil {
			method, untyped = reflect.ValueOf(made).MethodByName(strings.ToUpper(one.ID[:1])+one.ID[1:]+"WithBody"), true
			form = method.Type()
		}
		sent := []reflect.Value{reflect.ValueOf(context.Background())}
		for index := 1; index < form.NumIn()-1; index++ {
			in := form.In(index)
			switch {
			case untyped && index == form.NumIn()-3:
				sent = append(sent, reflect.ValueOf("application/json"))
			case untyped && index == form.NumIn()-2:
				sent = append(sent, reflect.ValueOf(bytes.NewReader(one.Body)))
			case len(path) > 0:
				sent, path = append(sent, decoded(in, path[0], one.ID)), path[1:]
			case in.Kind() == reflect.Pointer:
				sent = append(sent, decoded(in, one.Query, one.ID))
			default:
				sent = append(sent, decoded(in, one.Body, one.ID))
			}
		}
		answer := method.Call(sent)
		if failure, failed := answer[1].Interface().(error); failed {
			check(failure, one.ID)
		}
		response := answer[0].Interface().(*http.Response)
		response.Body.Close()
		results = append(results, result{one.ID, response.StatusCode, untyped})
	}
	check(json.NewEncoder(os.Stdout).Encode(results), "results")
}
