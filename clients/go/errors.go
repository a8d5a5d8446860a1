package astrocyte

import (
	"errors"
	"io"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	domain          = "astrocyte.dev"
	requestIDHeader = "x-request-id"
)

// Reason is the reason of an error, such as ErrBankNotFound. A newer server may send one without a constant.
type Reason string

// Error makes a Reason a target of errors.Is.
func (r Reason) Error() string {
	return string(r)
}

// Error is a failed call. errors.Is compares its reason, and errors.As returns it.
type Error struct {
	// Code of gRPC.
	Code codes.Code
	// Reason; empty if there is none.
	Reason Reason
	// Message of the server.
	Message string
	// Each variable part of the message.
	Metadata map[string]string
	// Path of the invalid field of the request; empty if it is not about a field.
	Field string
	// Time to wait before another try; nil if the server does not say.
	RetryAfter *time.Duration
	// Id of the call in the log of the server; empty if it has none.
	RequestID string

	status *status.Status
}

func (e *Error) Error() string {
	if e.Reason != "" {
		return string(e.Reason) + ": " + e.Message
	}
	return e.Code.String() + ": " + e.Message
}

// Is reports whether target is the reason of the error.
func (e *Error) Is(target error) bool {
	reason, ok := target.(Reason)
	return ok && reason == e.Reason
}

// GRPCStatus returns the status, for status.FromError.
func (e *Error) GRPCStatus() *status.Status {
	return e.status
}

// Reasons of statuses without details: they come from gRPC, a proxy or the limits below the server's code.
var bareReasons = map[codes.Code]Reason{
	codes.DeadlineExceeded:  ErrDeadlineExceeded,
	codes.ResourceExhausted: ErrMessageTooLarge,
	codes.Unauthenticated:   ErrUnauthenticated,
	codes.Unavailable:       ErrUnavailable,
	codes.Unimplemented:     ErrNotSupported,
}

// ErrorFromStatus returns the error of a status, such as that of an item of a stream.
func ErrorFromStatus(s *statuspb.Status) *Error {
	return fromStatus(status.FromProto(s))
}

func fromStatus(s *status.Status) *Error {
	e := &Error{Code: s.Code(), Message: s.Message(), Reason: bareReasons[s.Code()], Metadata: map[string]string{}, status: s}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == domain {
				e.Reason = Reason(d.GetReason())
				if d.GetMetadata() != nil {
					e.Metadata = d.GetMetadata()
				}
			}
		case *errdetails.BadRequest:
			if violations := d.GetFieldViolations(); len(violations) > 0 {
				e.Field = violations[0].GetField()
			}
		case *errdetails.RetryInfo:
			delay := d.GetRetryDelay().AsDuration()
			e.RetryAfter = &delay
		}
	}
	return e
}

// The error of a call; nil if it did not fail.
func newError(err error, trailers metadata.MD) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	e := fromStatus(status.Convert(err))
	if ids := trailers.Get(requestIDHeader); len(ids) > 0 {
		e.RequestID = ids[0]
	}
	return e
}

func streamError(err error, stream grpc.ClientStream) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return newError(err, stream.Trailer())
}
