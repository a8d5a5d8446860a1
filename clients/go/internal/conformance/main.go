// Driver of the conformance test: reads calls as lines of JSON and writes their outcomes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"reflect"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"astrocyte.dev/go"
)

type connection struct {
	Address     string `json:"address"`
	APIKey      string `json:"api_key"`
	TLS         bool   `json:"tls"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Retries     *bool  `json:"retries"`
}

type step struct {
	Connection json.RawMessage   `json:"connection"`
	Method     string            `json:"method"`
	Kind       string            `json:"kind"`
	Requests   [][]byte          `json:"requests"`
	Take       *int              `json:"take"`
	Deadline   *float64          `json:"deadline"`
	Headers    map[string]string `json:"headers"`
}

type failure struct {
	Code       int               `json:"code"`
	Kind       string            `json:"kind"`
	Reason     string            `json:"reason"`
	Message    string            `json:"message"`
	Metadata   map[string]string `json:"metadata"`
	Field      string            `json:"field"`
	RetryAfter *float64          `json:"retry_after"`
	RequestID  string            `json:"request_id"`
}

type outcome struct {
	Responses [][]byte `json:"responses,omitempty"`
	Error     *failure `json:"error,omitempty"`
}

func main() {
	clients := map[string]*astrocyte.Client{}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			log.Fatal(err)
		}
		name := string(s.Connection)
		if clients[name] == nil {
			clients[name] = connect(s.Connection)
		}
		written, err := json.Marshal(run(clients[name], s))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(written))
	}
}

func connect(raw json.RawMessage) *astrocyte.Client {
	var c connection
	if err := json.Unmarshal(raw, &c); err != nil {
		log.Fatal(err)
	}
	var options []astrocyte.Option
	if c.APIKey != "" {
		options = append(options, astrocyte.WithAPIKey(c.APIKey))
	}
	if c.TLS {
		options = append(options, astrocyte.WithTLS())
	}
	if c.CA != "" {
		options = append(options, astrocyte.WithCA(c.CA))
	}
	if c.Certificate != "" {
		options = append(options, astrocyte.WithCertificate(c.Certificate, c.Key))
	}
	if c.Retries != nil && !*c.Retries {
		options = append(options, astrocyte.WithoutRetries())
	}
	client, err := astrocyte.Connect(c.Address, options...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func run(client *astrocyte.Client, s step) outcome {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.Deadline != nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*s.Deadline*float64(time.Second)))
		defer cancel()
	}
	for name, value := range s.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	responses, err := call(ctx, reflect.ValueOf(client).MethodByName(s.Method), s)
	if err == nil {
		return outcome{Responses: responses}
	}
	var e *astrocyte.Error
	if !errors.As(err, &e) {
		log.Fatalf("%s: %T: %v", s.Method, err, err)
	}
	var delay *float64
	if e.RetryAfter != nil {
		seconds := e.RetryAfter.Seconds()
		delay = &seconds
	}
	return outcome{Error: &failure{int(e.Code), kind(e), string(e.Reason), e.Message, e.Metadata, e.Field, delay, e.RequestID}}
}

// The reason in mixed case, if errors.Is finds it.
func kind(e *astrocyte.Error) string {
	if e.Reason == "" || !errors.Is(e, e.Reason) {
		return ""
	}
	var name strings.Builder
	for _, part := range strings.Split(string(e.Reason), "_") {
		name.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return name.String()
}

func call(ctx context.Context, method reflect.Value, s step) ([][]byte, error) {
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	if s.Kind != "stream" {
		request := reflect.New(method.Type().In(1).Elem())
		decode(s.Requests[0], request)
		arguments = append(arguments, request)
	}
	results := method.Call(arguments)
	if err, ok := results[1].Interface().(error); ok {
		return nil, err
	}
	if s.Kind == "unary" {
		return [][]byte{encode(results[0])}, nil
	}
	stream := results[0]
	if s.Kind == "stream" {
		send := stream.MethodByName("Send")
		for _, raw := range s.Requests {
			request := reflect.New(send.Type().In(0).Elem())
			decode(raw, request)
			send.Call([]reflect.Value{request})
		}
		stream.MethodByName("CloseSend").Call(nil)
	}
	var found [][]byte
	for s.Take == nil || len(found) < *s.Take {
		received := stream.MethodByName("Recv").Call(nil)
		if err, ok := received[1].Interface().(error); ok {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, err
		}
		found = append(found, encode(received[0]))
	}
	return found, nil
}

func decode(raw []byte, into reflect.Value) {
	if err := proto.Unmarshal(raw, into.Interface().(proto.Message)); err != nil {
		log.Fatal(err)
	}
}

func encode(message reflect.Value) []byte {
	raw, err := proto.Marshal(message.Interface().(proto.Message))
	if err != nil {
		log.Fatal(err)
	}
	return raw
}
