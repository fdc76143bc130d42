// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Every key there is. What may stand in a file, what --help says and what the document must say
// comes from here.
#include "config/load.h"

#include <array>

namespace baton::config {
namespace {

constexpr std::string_view kPolicies =
    "one of round_robin, random, power_of_two, least_loaded, direct";

// clang-format off
constexpr std::array kKeys{
    Key{"listen", "--listen", "address", "127.0.0.1:8080", "Where clients connect; port 0 picks a free one."},
    Key{"admin", "--admin", "address", "none", "Where health, readiness and metrics are served, and workers shown and changed; off when absent."},
    Key{"tls.certificate", "--tls.certificate", "string", "none", "PEM file with the certificate chain of the client listener; needs tls.key."},
    Key{"tls.key", "--tls.key", "string", "none", "PEM file with the private key of that certificate; needs tls.certificate."},
    Key{"api_keys", "", "list", "none", "Keys clients may send as bearer token; without any, everybody may come in."},
    Key{"api_keys_file", "--api-keys-file", "string", "none", "File with more API keys, one a line; blank lines and lines that begin with # are left out."},
    Key{"admin_keys", "", "list", "none", "Keys that calls of the admin address must send as bearer token, /health, /ready and /metrics excepted; without any, calls that show or change workers are taken from loopback only."},
    Key{"admin_keys_file", "--admin-keys-file", "string", "none", "File with more of them, one a line, as for api_keys_file."},
    Key{"threads", "--threads", "integer", "0", "I/O threads; 0 means one per core."},
    Key{"cpu_threads", "--cpu-threads", "integer", "0", "Threads that render chat templates and tokenize long prompts; 0 means one for two cores."},
    Key{"shutdown_grace", "--shutdown-grace", "duration", "30s", "How long running requests may finish after SIGTERM."},
    Key{"trust_routing_headers", "--trust-routing-headers", "boolean", "false", "Whether requests may choose their workers, by header or body; otherwise what they say of it is left out."},
    Key{"trusted_sources", "", "list", "every source", "Addresses and networks (10.0.0.0/8) whose requests may; needs trust_routing_headers."},
    Key{"client_handoff_fields", "--client-handoff-fields", "one of strip, refuse", "strip", "What becomes of hand-off fields in a client's body, which could name another request's KV cache."},
    Key{"response_headers", "--response-headers", "boolean", "true", "Whether answers say in x-baton- headers which workers served."},
    Key{"overload_status", "--overload-status", "one of as_reported, 429, 503", "as_reported", "Status a client gets where an engine is overloaded."},
    Key{"timeouts.connect", "--timeouts.connect", "duration", "2s", "Connecting to a worker."},
    Key{"timeouts.first_byte", "--timeouts.first-byte", "duration", "5m", "From the request sent to a worker to its first token, or to its whole answer where it is not streamed."},
    Key{"timeouts.idle", "--timeouts.idle", "duration", "1m", "Between two reads of a worker's answer."},
    Key{"timeouts.client_header", "--timeouts.client-header", "duration", "10s", "From the first byte of a client's request head to its end."},
    Key{"timeouts.client_body", "--timeouts.client-body", "duration", "30s", "Time for a client's request body to arrive, plus one second for each 64 KiB of it."},
    Key{"timeouts.client_idle", "--timeouts.client-idle", "duration", "75s", "How long a client's connection is kept between two requests."},
    Key{"timeouts.handoff_grace", "--timeouts.handoff-grace", "duration", "5s", "How long a hand-off under way may still take after its client has left, so that no KV block stays pinned."},
    Key{"timeouts.client_write", "--timeouts.client-write", "duration", "1m", "A client that takes nothing of its answer for this long is given up."},
    Key{"limits.header_bytes", "--limits.header-bytes", "size", "64KiB", "Largest head of a request or an answer."},
    Key{"limits.body_bytes", "--limits.body-bytes", "size", "64MiB", "Largest request body; a larger one is answered with 413."},
    Key{"limits.response_bytes", "--limits.response-bytes", "size", "64MiB", "Largest answer of a worker that is not streamed."},
    Key{"limits.connections", "--limits.connections", "integer", "10000", "Client connections of the whole process."},
    Key{"limits.idle_upstreams", "--limits.idle-upstreams", "integer", "256", "Kept-alive connections per worker and thread; 0 keeps none."},
    Key{"limits.token_cache_bytes", "--limits.token-cache-bytes", "size", "64MiB", "Memory for the tokens of texts seen before, for each model."},
    Key{"log.format", "--log.format", "one of json, human", "human", "Log lines for machines or for people."},
    Key{"log.level", "--log.level", "one of debug, info, warning, error", "info", "The least important lines that are still written."},
    Key{"log.requests", "--log.requests", "boolean", "true", "Whether each request gets a line at its end."},
    Key{"etcd.endpoints", "--etcd", "list", "none", "The etcd servers that workers are registered at: http://host:port or https://host:port; the flag takes them separated by commas."},
    Key{"etcd.prefix", "--etcd.prefix", "string", "/baton/workers/", "What the keys of workers begin with."},
    Key{"etcd.user", "--etcd.user", "string", "none", "Who to log in as; needs etcd.password_file."},
    Key{"etcd.password_file", "--etcd.password-file", "string", "none", "File with the password of that user and nothing else."},
    Key{"etcd.ca", "--etcd.ca", "string", "none", "PEM file with the authorities that vouch for the etcd servers; without it, those of the system."},
    Key{"etcd.certificate", "--etcd.certificate", "string", "none", "PEM file with the certificate chain shown to the etcd servers; needs etcd.key."},
    Key{"etcd.key", "--etcd.key", "string", "none", "PEM file with the private key of that certificate; needs etcd.certificate."},
    Key{"etcd.timeout", "--etcd.timeout", "duration", "5s", "How long an etcd server may take to accept or answer before the next one is asked."},
    Key{"etcd.linger", "--etcd.linger", "duration", "15s", "How long a worker whose lease has run out keeps serving while its engine answers; so an outage of etcd is not one of the fleet. 0s: not at all."},
    Key{"health.interval", "--health.interval", "duration", "10s", "How often a worker that serves nobody is asked whether it is there; in a large fleet less often."},
    Key{"health.timeout", "--health.timeout", "duration", "20s", "How long it may take to answer; SGLang generates a token for it."},
    Key{"health.failures", "--health.failures", "integer", "3", "Failed requests in a row (timeouts, server errors, broken streams) after which a worker is ejected; one that cannot be reached is at once."},
    Key{"health.backoff", "--health.backoff", "duration", "1s", "How long an ejected worker waits for its first trial; twice as long for each further one."},
    Key{"health.backoff_max", "--health.backoff-max", "duration", "30s", "The longest such wait."},
    Key{"canary.idle", "--canary.idle", "duration", "none", "How long a worker may go without a success before it gets a tiny real request; without it there is no canary."},
    Key{"canary.timeout", "--canary.timeout", "duration", "3s", "How long that request may take."},
    Key{"canary.failures", "--canary.failures", "integer", "3", "Failed ones in a row after which the worker is ejected."},
    Key{"probe.enabled", "--probe.enabled", "boolean", "true", "Whether a worker is asked at registration what it is, and refused where that contradicts what was said of it."},
    Key{"probe.self_test", "--probe.self-test", "boolean", "false", "Whether a prefill and a decode worker must first pass one tiny hand-off."},
    Key{"kv_index.source", "--kv-index.source", "one of auto, events, decisions, off", "auto", "How Baton knows what workers' KV caches hold: events where they come and else its own decisions, only events, only decisions, or not at all."},
    Key{"kv_index.blocks", "--kv-index.blocks", "integer", "16000000", "KV blocks remembered at once, of all workers; about 50 bytes each."},
    Key{"kv_index.decision_ttl", "--kv-index.decision-ttl", "duration", "2m", "Without events: how long a worker is believed to keep what it was sent, from its last use."},
    Key{"kv_index.prediction_ttl", "--kv-index.prediction-ttl", "duration", "5s", "With events: how long a worker is believed to be about to store what it was sent; 0s: not at all."},
    Key{"kv_index.silence", "--kv-index.silence", "duration", "30s", "How long a worker that serves requests may send no event before Baton goes by decisions for it, and says so."},
    Key{"kv_index.snapshot", "--kv-index.snapshot", "string", "none", "File that what is known is kept in, so that a restarted Baton need not learn it again."},
    Key{"kv_index.snapshot_interval", "--kv-index.snapshot-interval", "duration", "1m", "How often that file is written."},
    Key{"models", "", "list", "none", "The models served, besides those that workers bring; --worker adds to them."},
    Key{"models[].name", "", "string", "required", "What clients put in \"model\"."},
    Key{"models[].aliases", "", "list", "none", "Further names for the same model."},
    Key{"models[].policy", "", kPolicies, "round_robin", "How a worker is chosen for a request."},
    Key{"models[].prefill_policy", "", kPolicies, "policy", "How a prefill worker is chosen, where that differs."},
    Key{"models[].decode_policy", "", kPolicies, "policy", "How a decode worker is chosen, where that differs."},
    Key{"models[].disaggregation", "", "one of auto, required, off", "auto", "Whether prefill runs on workers of its own: where there are any, always, or never."},
    Key{"models[].on_prefill_failure", "", "one of retry, fallback, fail", "retry", "After a failed prefill: another prefill worker; that, then a decode worker alone; or an error at once."},
    Key{"models[].retries", "", "integer", "2", "Further attempts at a request before its first token."},
    Key{"models[].migration", "", "integer", "0", "Further attempts after the first token, continuing the stream on another worker."},
    Key{"models[].affinity.ttl", "", "duration", "none", "How long a session stays with its workers after its last request ended; without it there is no affinity."},
    Key{"models[].affinity.sessions", "", "integer", "100000", "Sessions remembered at once, for prefill and for decode."},
    Key{"models[].affinity.body_fields", "", "list", "none", "Of session_id and user: body fields that name the session where no header does."},
    Key{"models[].tokenizer", "", "string", "none", "Folder with the model's tokenizer.json (or a tiktoken file), tokenizer_config.json and chat template, as on the Hugging Face hub."},
    Key{"models[].chat_template", "", "string", "that of the folder", "File with another chat template (Jinja); the one the engines were given with --chat-template."},
    Key{"models[].tokenize", "", "one of local, engine, off", "local with a tokenizer, else off", "Who turns prompts into token ids: Baton, a worker that is asked for it, or nobody; then requests go by load alone."},
    Key{"models[].send_token_ids", "", "one of auto, always, never", "auto", "Whether workers get those ids, so that they need not tokenize again; auto: where the engine and its version take them."},
    Key{"models[].workers", "", "list", "none", "The engine servers of the model, besides those that register elsewhere."},
    Key{"models[].workers[].url", "", "string", "required", "Where the engine server listens: http://host:port."},
    Key{"models[].workers[].engine", "", "one of vllm, sglang, trtllm", "vllm", "Which engine it runs."},
    Key{"models[].workers[].role", "", "one of prefill, decode, aggregated", "aggregated", "Which part of a request it takes; aggregated takes both."},
    Key{"models[].workers[].bootstrap_port", "", "integer", "asked of the engine", "Port at which decode workers meet an SGLang or Mooncake prefill worker."},
    Key{"models[].workers[].id", "", "string", "host:port", "What requests and answers call it."},
    Key{"models[].workers[].namespace", "", "string", "default", "Prefill and decode workers hand over only within one."},
    Key{"models[].workers[].instance", "", "string", "none", "Which run of the engine it is; another one at the same address is another worker."},
    Key{"models[].workers[].handoff", "", "one of nixl_pull, nixl_push, mooncake, bootstrap, context_first, generation_first", "by engine", "How KV caches get from prefill to decode."},
    Key{"models[].workers[].data_parallel_size", "", "integer", "1", "Data-parallel ranks behind the one address."},
    Key{"models[].workers[].taints", "", "list", "none", "What a request may require or prefer of a worker."},
    Key{"models[].workers[].topology", "", "list", "none", "Where it is, as domain=value: rack=r7."},
    Key{"models[].workers[].transfer_domain", "", "string", "none", "The domain of topology that KV caches of this prefill worker should not leave."},
    Key{"models[].workers[].transfer_enforcement", "", "one of required, preferred", "required", "Whether that domain is a condition or a wish."},
    Key{"models[].workers[].transfer_weight", "", "number", "none", "How much the wish counts; only with preferred."},
    Key{"models[].workers[].kv_events", "", "string", "asked of the engine", "Where its KV events come from: tcp://host:port of its first rank, each further one has the next port; with * for host Baton binds and the engine connects. off: it is not listened to."},
    Key{"models[].workers[].kv_replay", "", "string", "none", "Where events that were missed can be asked for: tcp://host:port of its first rank."},
    Key{"models[].workers[].kv_topic", "", "string", "all", "What the topic of its events begins with."},
    Key{"models[].workers[].block_size", "", "integer", "asked of the engine", "Tokens in a block of its KV cache."},
    Key{"models[].workers[].nixl.engine_id", "", "string", "asked of the engine", "NIXL push: the engine id of a prefill worker."},
    Key{"models[].workers[].nixl.side_channel", "", "address", "asked of the engine", "NIXL push: where its side channel listens."},
    Key{"models[].workers[].nixl.tensor_parallel_size", "", "integer", "1", "NIXL push: its tensor-parallel size."},
    Key{"models[].workers[].nixl.pipeline_parallel_size", "", "integer", "1", "NIXL push: its pipeline-parallel size."},
};
// clang-format on

}  // namespace

std::span<const Key> keys() { return kKeys; }

}  // namespace baton::config
