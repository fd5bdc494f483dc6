// Package deploy checks the files in deploy/: each is read by what its format has to offer, strictly, and what it would start is
// started, with its own arguments and its own environment, on a real database.
//
//	compose.yaml              compose-go, the library of docker compose
//	kubernetes/*.yaml         the types of k8s.io/api, in which each key must exist
//	nomad/stint.nomad.hcl     the syntax of HCL, and the names of Nomad's own types
//	systemd/*.service         systemd-analyze
//	Dockerfile                Buildah builds its last stage, and the test runs what that has
//
// It is a module of its own, so that what it needs to read them is downloaded for tests alone.
package deploy
