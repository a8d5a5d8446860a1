// Package astrocyte is a client for Astrocyte, a memory server for AI agents.
//
// A Client has the methods of all services of the protocol; their messages are in the package astrocytev1.
package astrocyte

import (
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// DefaultTimeout is longer than the deadlines that the server sets by itself, so that its own error comes first.
const DefaultTimeout = 30 * time.Second

// The largest answer that a server can be set to send.
const maxReceiveBytes = 64 << 20

// A server that was down is tried again at least this often; the default of gRPC grows to two minutes.
const maxReconnectDelay = 5 * time.Second

//go:embed service_config.json
var serviceConfig string

// Client calls a server; safe for use by several goroutines.
type Client struct {
	Services
	conn *grpc.ClientConn
}

// Close closes the connection; calls in progress are cancelled.
func (c *Client) Close() error {
	return c.conn.Close()
}

type config struct {
	apiKey, ca, certificate, key string
	tls, retries                 bool
	timeout                      time.Duration
	dial                         []grpc.DialOption
}

// Option is an option of Connect.
type Option func(*config)

// WithAPIKey sends an API key or token with every call. Use it with TLS, except to this machine.
func WithAPIKey(key string) Option {
	return func(c *config) { c.apiKey = key }
}

// WithTLS uses TLS with the roots of the system. WithCA and WithCertificate imply it.
func WithTLS() Option {
	return func(c *config) { c.tls = true }
}

// WithCA trusts the roots of a PEM file instead of those of the system.
func WithCA(file string) Option {
	return func(c *config) { c.tls, c.ca = true, file }
}

// WithCertificate presents the certificate of a PEM file, with its chain; key is the PEM file of its private key.
func WithCertificate(file, key string) Option {
	return func(c *config) { c.tls, c.certificate, c.key = true, file, key }
}

// WithTimeout sets the time until a call fails that is no stream and whose context has no deadline. Zero leaves it to
// the server. The default is DefaultTimeout.
func WithTimeout(timeout time.Duration) Option {
	return func(c *config) { c.timeout = timeout }
}

// WithoutRetries repeats no call. By default, calls that the server could not take are repeated.
func WithoutRetries() Option {
	return func(c *config) { c.retries = false }
}

// WithDialOptions adds options of gRPC, such as interceptors or a dialer.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(c *config) { c.dial = append(c.dial, options...) }
}

// Connect connects to a server at host:port or unix:PATH. Nothing is sent before the first call. It fails if a file
// cannot be read or is not what it should be.
func Connect(address string, options ...Option) (*Client, error) {
	c := config{timeout: DefaultTimeout, retries: true}
	for _, option := range options {
		option(&c)
	}
	secret, err := c.credentials()
	if err != nil {
		return nil, err
	}
	calls := interceptors{apiKey: c.apiKey, timeout: c.timeout}
	delays := backoff.DefaultConfig
	delays.MaxDelay = maxReconnectDelay
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(secret),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceiveBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: delays, MinConnectTimeout: maxReconnectDelay}),
		grpc.WithChainUnaryInterceptor(calls.unary),
		grpc.WithChainStreamInterceptor(calls.stream),
	}
	if !c.retries {
		dial = append(dial, grpc.WithDisableRetry())
	}
	conn, err := grpc.NewClient(address, append(dial, c.dial...)...)
	if err != nil {
		return nil, fmt.Errorf("astrocyte: address %q: %w", address, err)
	}
	return &Client{Services: newServices(conn), conn: conn}, nil
}

func (c *config) credentials() (credentials.TransportCredentials, error) {
	if !c.tls {
		return insecure.NewCredentials(), nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.ca != "" {
		content, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("astrocyte: roots: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("astrocyte: roots: %s has no certificates in PEM format", c.ca)
		}
	}
	if c.certificate == "" && c.key == "" {
		return credentials.NewTLS(settings), nil
	}
	if c.certificate == "" || c.key == "" {
		return nil, errors.New("astrocyte: a client certificate needs two files: pass both certificate and key")
	}
	pair, err := tls.LoadX509KeyPair(c.certificate, c.key)
	if err != nil {
		return nil, fmt.Errorf("astrocyte: client certificate: %w", err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return credentials.NewTLS(settings), nil
}
