// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "app/inheritance.h"
#include "app/io_thread.h"
#include "app/next_process.h"
#include "app/predecessor.h"
#include "app/process_memory.h"
#include "app/self_test.h"
#include "app/services.h"
#include "app/successor.h"
#include "config/config.h"
#include "core/result.h"
#include "fleet/admin_source.h"
#include "fleet/file_source.h"
#include "fleet/monitor/watch.h"
#include "fleet/source.h"
#include "http/listener.h"
#include "http/routes.h"
#include "http_client/upstream_pool.h"
#include "kvcache/view/feeds.h"
#include "model/worker.h"
#include "net/deadlines.h"
#include "net/task_group.h"
#include "pipeline/prompt_step.h"
#include "pipeline/route_query.h"
#include "telemetry/log.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <type_traits>
#include <vector>

namespace baton::app {

// Role. The composition root: makes everything, starts it in order, and ends it in order when told
//   to.
// Confinement. The control thread, which is the one that calls run().
// Lifetime. One per process.
class Router {
 public:
  // Source of the configuration, to read it again.
  struct Origin {
    std::string file;  // empty: from nowhere
    fleet::FileSource::Load load;
  };
  // State inherited from the process before this one, and the command that starts the next one.
  struct Succession {
    Inheritance inherited;
    std::unique_ptr<Predecessor> predecessor;  // null: none, or none that is to be waited for
    std::vector<std::string> command;          // of a successor; empty: there will be none
    std::function<void()> serving = [] {};     // called when connections are accepted
  };
  Router(config::Config config, Origin origin, Succession succession, telemetry::Logger& log);
  ~Router();

  // Binds every address and starts serving; where there is a predecessor, run() does that when it
  // leaves. Afterwards address() is known.
  Result<void> start();
  const model::Endpoint& address() const { return address_; }
  const std::optional<model::Endpoint>& admin_address() const { return admin_address_; }

  // Returns when a signal has ended the process' work: streams have finished, or the grace period
  // is over.
  void run();

 private:
  using Loaded = std::invoke_result_t<fleet::FileSource::Load>;

  Loaded with_tokenizers(Loaded loaded, const std::string& file);
  Result<void> load_tls();
  Result<void> make_threads();
  // One for each thread, or one for each socket where those are more: they share the others.
  using Acceptors = std::vector<boost::asio::ip::tcp::acceptor>;
  Result<Acceptors> adopt(std::vector<InheritedSocket> sockets);
  Result<Acceptors> bind_anew();
  Result<void> make_admin();
  Result<boost::asio::ip::tcp::acceptor> make_admin_acceptor(const model::Endpoint& address);
  void close_unused_sockets();
  void open();
  boost::asio::awaitable<void> follow();
  Predecessor::Progress progress();
  bool is_ready() const;
  void start_successor(std::vector<std::string> command);
  std::string_view why_no_restart() const;
  void hand_over();
  // Whether limits.connections fit into the limit of descriptors, of which `open` is one.
  void say_what_fits(int open);
  // Whether a body of limits.body_bytes fits into limits.memory.
  void say_what_memory_is_for();
  void start_sources();
  std::vector<fleet::SourceStatus> source_states() const;
  void on_signal();
  void await_hangup();
  void wait_for_tasks(std::chrono::steady_clock::time_point until, void (Router::*then)());
  void look_for_tasks();
  bool is_idle() const;
  void cut_short();
  void abort_all();
  void end();
  void end_when_admin_is_quiet();

  telemetry::Logger& log_;
  boost::asio::io_context control_{1};
  MemoryTrim memory_trim_;
  Services services_;
  net::Deadlines deadlines_;
  net::TaskGroup tasks_;
  SelfTest self_test_;
  fleet::Watch health_;
  kvcache::Feeds feeds_;
  std::unique_ptr<fleet::FileSource> file_;              // null: no file
  std::vector<std::unique_ptr<fleet::Source>> sources_;  // the others
  boost::asio::signal_set signals_;
  boost::asio::signal_set hangup_;
  boost::asio::steady_timer timer_;
  fleet::AdminSource admin_source_;
  http::ApiKeys admin_keys_;
  // For route queries: the prompt is tokenized as if the request were to be served.
  http_client::UpstreamPool admin_pool_;
  pipeline::PromptStep admin_prompts_;
  pipeline::RouteQuery route_query_;
  std::optional<http::Routes> admin_routes_;
  std::atomic<std::size_t> admin_connections_{0};
  std::unique_ptr<http::Listener> admin_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::vector<Acceptors> acceptors_;  // by thread, until open()
  std::vector<Handed> listening_;     // for a successor
  Inheritance inherited_;
  std::unique_ptr<Predecessor> predecessor_;  // until it has left
  std::optional<std::chrono::steady_clock::time_point> could_serve_since_;
  std::function<void()> serving_;
  std::unique_ptr<Successor> successor_;  // null: there will be none
  model::Endpoint address_;
  std::optional<model::Endpoint> admin_address_;
  // Deadline of the current wait for tasks, and the step that follows it.
  std::chrono::steady_clock::time_point deadline_;
  void (Router::*at_deadline_)() = nullptr;
  bool open_ = false;
  bool handed_over_ = false;
  bool ended_ = false;
};

}  // namespace baton::app
