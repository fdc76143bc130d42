// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/template.h"

#include "libs/jinja/binder.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/lexer.h"
#include "libs/jinja/parser.h"
#include "libs/jinja/run.h"

#include <simdjson.h>

#include <utility>

namespace baton::jinja {

struct Template::Program {
  Block block;
  ScopeEntry scope;
  std::size_t slots = 0;
};

Template::Template(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Template::~Template() = default;

Result<std::shared_ptr<const Template>> Template::parse(std::string source) {
  if (!simdjson::validate_utf8(source)) {
    return fail(ErrorCode::InvalidTemplate,
                "The chat template cannot be read: it is not UTF-8 text.");
  }
  try {
    auto program = std::make_unique<Program>();
    program->block = Parser(tokenize(source)).parse();
    program->slots = Binder::bind(program->block, program->scope);
    return std::shared_ptr<const Template>(new Template(std::move(program)));
  } catch (const Failure& failure) {
    return fail(ErrorCode::InvalidTemplate, "The chat template cannot be read: " + failure.message);
  }
}

Result<std::string> Template::render(const Dict& variables, const RenderContext& context) const {
  try {
    Run run(variables, context);
    {
      const Run::Call whole(run, program_->slots, {});
      program_->scope.enter(run);
      run_block(program_->block, run);
    }
    return std::move(run).take_output();
  } catch (const Failure& failure) {
    if (context.crossed) *context.crossed = failure.limit;
    if (failure.stopped) return fail(ErrorCode::Stopped, failure.message);
    return fail(ErrorCode::RenderFailed, "The chat template failed: " + failure.message);
  }
}

}  // namespace baton::jinja
