package astrocyte

import (
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

const bankHeader = "x-astrocyte-bank"

// Ids of banks, as the protocol describes them. Others are left to the server, whose error names the field.
var bankID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$`)

// One RPC of the protocol.
type rpc struct {
	// Path of the field that names its bank; empty without one.
	bank []string
	// True if an empty request_id is filled, so that a repeated call takes effect once.
	hasRequestID bool
	// True if the request has the time that the server waits.
	hasTimeout bool
	// Added to the default timeout.
	extraSeconds int
}

type interceptors struct {
	apiKey  string
	timeout time.Duration
}

// Sets the metadata, request id and deadline of a call, and makes an *Error of its failure.
func (i interceptors) unary(
	ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	info := rpcs[method]
	message, ok := request.(proto.Message)
	if ok && info.hasRequestID {
		message = withRequestID(message)
	}
	if _, has := ctx.Deadline(); !has && i.timeout > 0 && ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, i.timeout+info.wait(message))
		defer cancel()
	}
	if !ok {
		return fmt.Errorf("astrocyte: %T is not a message", request)
	}
	var trailers metadata.MD
	ctx = i.outgoing(ctx, info.bankOf(message))
	return newError(invoke(ctx, method, message, response, conn, append(options, grpc.Trailer(&trailers))...), trailers)
}

func (i interceptors) stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	begin := func(bank string) (grpc.ClientStream, error) {
		stream, err := open(i.outgoing(ctx, bank), description, conn, method, options...)
		return stream, newError(err, nil)
	}
	if !description.ClientStreams {
		return &serverStream{ctx: ctx, info: rpcs[method], begin: begin}, nil
	}
	stream, err := begin("")
	if err != nil {
		return nil, err
	}
	return &errorStream{stream}, nil
}

func (i interceptors) outgoing(ctx context.Context, bank string) context.Context {
	if i.apiKey != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+i.apiKey)
	}
	if bankID.MatchString(bank) {
		ctx = metadata.AppendToOutgoingContext(ctx, bankHeader, bank)
	}
	return ctx
}

// The bank that a request names; empty if it names none.
func (r rpc) bankOf(request proto.Message) string {
	if len(r.bank) == 0 {
		return ""
	}
	message := request.ProtoReflect()
	last := len(r.bank) - 1
	for _, name := range r.bank[:last] {
		message = message.Get(fieldOf(message, name)).Message()
	}
	return message.Get(fieldOf(message, r.bank[last])).String()
}

// The time that the server takes for the call beyond the default timeout.
func (r rpc) wait(request proto.Message) time.Duration {
	if r.hasTimeout {
		message := request.ProtoReflect()
		if field := fieldOf(message, "timeout"); message.Has(field) {
			if given, ok := message.Get(field).Message().Interface().(*durationpb.Duration); ok {
				return max(0, given.AsDuration())
			}
		}
	}
	return time.Duration(r.extraSeconds) * time.Second
}

func fieldOf(message protoreflect.Message, name string) protoreflect.FieldDescriptor {
	return message.Descriptor().Fields().ByName(protoreflect.Name(name))
}

// A copy of the request with an id if it has none.
func withRequestID(request proto.Message) proto.Message {
	message := request.ProtoReflect()
	field := fieldOf(message, "request_id")
	if message.Get(field).String() != "" {
		return request
	}
	clone := proto.Clone(request)
	clone.ProtoReflect().Set(field, protoreflect.ValueOfString(newUUID()))
	return clone
}

// A random UUID.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails.
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// errorStream makes an *Error of a failure of a stream.
type errorStream struct {
	grpc.ClientStream
}

func (s *errorStream) RecvMsg(message any) error {
	return streamError(s.ClientStream.RecvMsg(message), s.ClientStream)
}

// serverStream begins with its request, which names the bank.
type serverStream struct {
	grpc.ClientStream
	ctx   context.Context
	info  rpc
	begin func(bank string) (grpc.ClientStream, error)
}

func (s *serverStream) SendMsg(request any) error {
	message, ok := request.(proto.Message)
	if !ok {
		return fmt.Errorf("astrocyte: %T is not a message", request)
	}
	stream, err := s.begin(s.info.bankOf(message))
	if err != nil {
		return err
	}
	s.ClientStream = stream
	return stream.SendMsg(request)
}

func (s *serverStream) RecvMsg(message any) error {
	return streamError(s.ClientStream.RecvMsg(message), s.ClientStream)
}

func (s *serverStream) Context() context.Context {
	if s.ClientStream == nil {
		return s.ctx
	}
	return s.ClientStream.Context()
}
