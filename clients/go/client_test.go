package astrocyte_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"astrocyte.dev/go"
	pb "astrocyte.dev/go/astrocytev1"
)

// A client of the server at $ASTROCYTE_ADDRESS.
func connect(t *testing.T) *astrocyte.Client {
	t.Helper()
	address := os.Getenv("ASTROCYTE_ADDRESS")
	if address == "" {
		t.Skip("ASTROCYTE_ADDRESS is not set: there is no server")
	}
	client, err := astrocyte.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestRetainedIsRecalledAndStreamed(t *testing.T) {
	client, ctx, bank := connect(t), context.Background(), "go-tests"
	stream, err := client.StreamRetain(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"Ines lives in Porto.", "Callum lives in Edinburgh."} {
		if err := stream.Send(&pb.StreamRetainRequest{BankId: bank, Item: &pb.RetainItem{Content: content}}); err != nil {
			t.Fatal(err)
		}
	}
	_ = stream.CloseSend()
	stored := 0
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || answer.GetResult() == nil {
			t.Fatal(answer, err)
		}
		stored++
	}
	if stored != 2 {
		t.Fatalf("%d answers, expected 2", stored)
	}
	found, err := client.Recall(ctx, &pb.RecallRequest{BankId: bank, Query: "where does Ines live?"})
	if err != nil || found.GetHits()[0].GetText() != "Ines lives in Porto." {
		t.Fatal(found, err)
	}
	first := int64(0)
	changes, err := client.Watch(ctx, &pb.WatchRequest{BankId: bank, AfterPosition: &first})
	if err != nil {
		t.Fatal(err)
	}
	change, err := changes.Recv()
	if err != nil || change.GetChange().GetPosition() != 1 {
		t.Fatal(change, err)
	}
}

func TestErrorsHaveReasons(t *testing.T) {
	client, ctx := connect(t), context.Background()
	_, err := client.Recall(ctx, &pb.RecallRequest{BankId: "nobody", Query: "anything?"})
	var found *astrocyte.Error
	if !errors.Is(err, astrocyte.ErrBankNotFound) || !errors.As(err, &found) || found.Metadata["bank_id"] != "nobody" {
		t.Fatal(err)
	}
	if found.RequestID == "" {
		t.Fatal("no request id")
	}
	_, err = client.Recall(ctx, &pb.RecallRequest{BankId: "nobody", Query: "anything?", MaxResults: 1000})
	if !errors.As(err, &found) || found.Field != "max_results" {
		t.Fatal(err)
	}
	changes, err := client.Watch(ctx, &pb.WatchRequest{BankId: "nobody"})
	if err == nil {
		_, err = changes.Recv()
	}
	if !errors.Is(err, astrocyte.ErrBankNotFound) {
		t.Fatal(err)
	}
	late, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	if _, err = client.ListBanks(late, &pb.ListBanksRequest{}); !errors.Is(err, astrocyte.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestDetailsBecomeFields(t *testing.T) {
	limited, err := status.New(codes.ResourceExhausted, "later").WithDetails(
		&errdetails.ErrorInfo{Domain: "astrocyte.dev", Reason: "LIMIT_REACHED", Metadata: map[string]string{"kind": "minute"}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "items[3].content"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	found := astrocyte.ErrorFromStatus(limited.Proto())
	if !errors.Is(found, astrocyte.ErrLimitReached) || errors.Is(found, astrocyte.ErrOverloaded) {
		t.Fatal(found.Reason)
	}
	if found.Metadata["kind"] != "minute" || *found.RetryAfter != 1500*time.Millisecond || found.Field != "items[3].content" {
		t.Fatalf("%+v", found)
	}
	if found.Error() != "LIMIT_REACHED: later" || status.Code(found) != codes.ResourceExhausted {
		t.Fatal(found)
	}
}

func TestStatusesOfOthers(t *testing.T) {
	other, err := status.New(codes.NotFound, "no").WithDetails(&errdetails.ErrorInfo{Domain: "example.com", Reason: "BANK_NOT_FOUND"})
	if err != nil {
		t.Fatal(err)
	}
	if found := astrocyte.ErrorFromStatus(other.Proto()); found.Reason != "" || found.RetryAfter != nil {
		t.Fatalf("%+v", found)
	}
	bare := astrocyte.ErrorFromStatus(status.New(codes.ResourceExhausted, "big").Proto())
	if !errors.Is(bare, astrocyte.ErrMessageTooLarge) {
		t.Fatal(bare)
	}
}

func TestNoServerIsUnavailable(t *testing.T) {
	// Port 1 is of a service that no machine here has.
	client, err := astrocyte.Connect("127.0.0.1:1", astrocyte.WithoutRetries())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.ListBanks(context.Background(), &pb.ListBanksRequest{}); !errors.Is(err, astrocyte.ErrUnavailable) {
		t.Fatal(err)
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.pem")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]astrocyte.Option{
		"no certificates in PEM format": astrocyte.WithCA(text),
		"no such file":                  astrocyte.WithCA(text + ".missing"),
		"both certificate and key":      astrocyte.WithCertificate(text, ""),
		"client certificate":            astrocyte.WithCertificate(text, text),
	} {
		if _, err := astrocyte.Connect("localhost:50051", option); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
