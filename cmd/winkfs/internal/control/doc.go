// Package control is the daemon's API: HTTP with JSON over a unix socket in
// the workspace's state directory.
//
// Every operation is a POST to /v1/NAME with a JSON document. Answers come in
// three forms:
//
//   - one JSON document, or an error document with the status 4xx or 5xx;
//   - a stream (log, diff): the bytes as they come, and the outcome, result or
//     error, in the HTTP trailer "Winkfs-Outcome";
//   - exec: the connection is upgraded to frames (frame.go), so that input,
//     output, window sizes and signals travel at the same time. A client that
//     goes away ends its command.
//
// The socket is 0600 in a directory that is 0700, and the server asks the
// kernel who is calling (SO_PEERCRED): only the daemon's own user and root
// are answered. It lies outside of every mount, so nothing in a sandbox
// reaches it.
//
// The wire types are those of the workspace package: this package adds none.
package control
