// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/jinja/template.h"

#include "prompt/jinja/binder.h"
#include "prompt/jinja/failure.h"
#include "prompt/jinja/lexer.h"
#include "prompt/jinja/parser.h"
#include "prompt/jinja/run.h"

#include <simdjson.h>

#include <utility>

namespace baton::prompt::jinja {

struct Template::Program {
  Block block;
  ScopeEntry scope;
  std::size_t slots = 0;
};

Template::Template(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Template::~Template() = default;

Result<std::shared_ptr<const Template>> Template::parse(std::string source) {
  if (!simdjson::validate_utf8(source)) {
    return fail(Errc::InvalidRequest, "The chat template cannot be read: it is not UTF-8 text.");
  }
  try {
    auto program = std::make_unique<Program>();
    program->block = Parser(tokenize(source)).parse();
    program->slots = Binder::bind(program->block, program->scope);
    return std::shared_ptr<const Template>(new Template(std::move(program)));
  } catch (const Failure& failure) {
    return fail(failure.code, "The chat template cannot be read: " + failure.message);
  }
}

Result<std::string> Template::render(const Dict& variables,
                                     const Circumstances& circumstances) const {
  try {
    Run run(variables, circumstances);
    {
      const Run::Call whole(run, program_->slots, {});
      program_->scope.enter(run);
      run_block(program_->block, run);
    }
    return std::move(run).take_output();
  } catch (const Failure& failure) {
    if (circumstances.crossed) *circumstances.crossed = failure.limit;
    if (failure.code != Errc::InvalidRequest) return fail(failure.code, failure.message);
    return fail(failure.code, "The chat template failed: " + failure.message);
  }
}

}  // namespace baton::prompt::jinja
