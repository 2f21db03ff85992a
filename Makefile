# holdfast. `make help` lists the targets.
#
# Variables: BUILD (where the output goes), SAN (a -fsanitize= list), CC, CFLAGS, PREFIX, LIBDIR, DESTDIR.

VERSION := $(shell sed -n 's/^.define HF_VERSION_STRING "\(.*\)"/\1/p' include/holdfast.h)
SOVERSION := 0
PREFIX ?= /usr/local
BUILD ?= build
SAN ?=

BINDIR = $(PREFIX)/bin
LIBDIR = $(PREFIX)/lib
INCDIR = $(PREFIX)/include
MANDIR = $(PREFIX)/share/man
PLUGINDIR = $(LIBDIR)/holdfast
UNITDIR = $(PREFIX)/lib/systemd/system

CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wvla -Wswitch-enum \
	-Wdeclaration-after-statement $(WERROR)
HARDEN = -fstack-protector-strong -fPIE
ifeq ($(SAN),)
HARDEN += -D_FORTIFY_SOURCE=2
else
HARDEN += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARN) $(HARDEN) -fvisibility=hidden -Iinclude -Isrc -I$(BUILD)/gen \
	$(PLACE_FLAGS) -MMD -MP $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = -Wl,-z,relro,-z,now -pthread $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)

# `make V=1` shows the commands.
Q = $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))

, := ,
blank := $(subst ,, )
obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
BASE_SRC := $(wildcard src/base/*.c)
CORE_SRC := $(wildcard src/core/*.c)
LIB_SRC := $(BASE_SRC) $(CORE_SRC) $(wildcard src/client/*.c src/fence/*.c src/stores/file/*.c)
CLI_SRC := $(wildcard src/cli/*.c src/cli/*/*.c src/idem/*.c src/outbox/*.c src/torture/*.c src/dbs/*.c src/senders/*.c)
TOOLS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/conform/conform.c tests/*/tool_*.c))
# A plugin for each folder of src/stores that has a file `packages`: what pkg-config must know for it.
known = $(foreach dir,$(patsubst %/packages,%,$(wildcard $(1)/*/packages)),$(if $(shell \
	pkg-config --exists $$(cat $(dir)/packages) && echo yes),$(notdir $(dir))))
STORES := $(call known,src/stores)
# Or a file `libs`, for a library that pkg-config does not know: what the linker must find for it; it may
# be empty.
STORES += $(foreach dir,$(patsubst %/libs,%,$(wildcard src/stores/*/libs)),$(if $(shell \
	$(CC) -shared -xc /dev/null -xnone $$(cat $(dir)/libs) -o /dev/null 2>/dev/null && echo yes),$(notdir $(dir))))
STORE_SO := $(STORES:%=$(BUILD)/stores/%.so)
# The databases of the commands that work in them, likewise; beside the stores, as db-NAME.so.
DBS := $(call known,src/dbs)
DB_SO := $(DBS:%=$(BUILD)/stores/db-%.so)
# What the relay of an outbox sends through, likewise: send-NAME.so.
SENDERS := $(call known,src/senders)
SENDER_SO := $(SENDERS:%=$(BUILD)/stores/send-%.so)
# And the server, a program beside them, with what it shares with the command line.
SERVE := $(if $(shell pkg-config --exists $$(cat src/serve/packages) && echo yes),serve)
SERVE_SRC := $(wildcard src/serve/*.c) $(addprefix src/cli/,options.c help.c signals.c store.c store_fd.c say/output.c say/show.c say/slots.c)
SERVE_BIN := $(SERVE:%=$(BUILD)/stores/holdfast-%)
store_obj = $(call obj,$(wildcard src/stores/$(1)/*.c src/stores/$(1)/*/*.c)) $(if $(wildcard \
	src/stores/$(1)/scripts/embed.sh),$(BUILD)/obj/gen/$(1).o) $(call http_obj,src/stores/$(1))
# What plugins over libcurl share.
http_obj = $(if $(shell grep -s libcurl $(1)/packages),$(call obj,$(wildcard src/http/*.c)))
store_libs = $(shell cat src/stores/$(1)/libs 2>/dev/null || \
	pkg-config --libs $$(cat src/stores/$(1)/packages))
# The programs tests/FOLDER/test_*.c. What is of a plugin, tests/unit/test_STORE_*.c and tests/STORE/test_*.c, is left out
# with it.
STORE_UNITS := $(notdir $(patsubst %/,%,$(dir $(wildcard src/stores/*/packages src/stores/*/libs))))
of_plugin = $(BUILD)/tests/unit/test_$(1)_% $(BUILD)/tests/$(1)/test_%
UNIT := $(filter-out $(foreach name,$(filter-out $(STORES) $(SERVE),$(STORE_UNITS) serve),$(call of_plugin,$(name))),\
	$(patsubst %.c,$(BUILD)/%,$(wildcard tests/*/test_*.c)))
# tests/FOLDER/NAME.c is what the programs tests/FOLDER/test_NAME_*.c share.
SHARED := $(foreach file,$(wildcard tests/*/*.c),$(if $(filter test_%,$(notdir $(file))),,$(file)))
shared_obj = $(call obj,$(foreach file,$(SHARED),$(if $(filter \
	$(dir $(file))test_$(basename $(notdir $(file)))_%,$(1)),$(file))))
PLUGINS := $(patsubst tests/support/plugins/%.c,$(BUILD)/tests/plugins/%.so,\
	$(wildcard tests/support/plugins/*.c))
BENCH := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/bench_*.c))

LIB_A = $(BUILD)/libholdfast.a
LIB_SO = $(BUILD)/libholdfast.so.$(SOVERSION)
BIN = $(BUILD)/holdfast

UNITS := $(patsubst systemd/%.in,$(BUILD)/systemd/%,$(wildcard systemd/*.in))

.PHONY: all everything help try check test test-long test-versions test-programs test-tools bench model sim lint format \
	install uninstall deb clean deps FORCE
all: everything
	@scripts/plugins.sh built $(STORES) $(DBS:%=db-%) $(SENDERS:%=send-%) $(SERVE)
everything: $(BIN) $(LIB_A) $(LIB_SO) $(STORE_SO) $(DB_SO) $(SENDER_SO) $(SERVE_BIN) $(BUILD)/holdfast.pc $(UNITS)
# A warning stops us, but not somebody who builds holdfast with a compiler of later years.
test-programs test-tools conform bench: WERROR = -Werror

help:
	@echo 'make            build $(BIN) and the library'
	@echo 'make try        install what is missing, build, run a job under a lock'
	@echo 'make check      the tests that need no server'
	@echo 'make test       install what is missing, build, run every test; T=redis: one folder of tests/'
	@echo 'make test-long  the tests that take minutes: storms, writers, histories, the rest under sanitizers'
	@echo 'make conform    URL=scheme://...: run the conformance suite over a store'
	@echo 'make test-versions  the stores and fences on other versions of their servers'
	@echo 'make bench      measure, side by side with the peers'
	@echo 'make model      check the models of redlock and of file: in larger worlds (long)'
	@echo 'make sim        simulate redlock with SEEDS=$(SEEDS) random histories'
	@echo 'make lint       clang-format, clang-tidy, cppcheck, shellcheck, tidy rules'
	@echo 'make format     let clang-format rewrite the sources'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR=$(DESTDIR); and make uninstall'
	@echo 'make deb        Debian packages, in $(BUILD)/deb'

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -c $< -o $@

# Texts that are compiled in, as C string literals.
define as_c
$(BUILD)/gen/$(1)/%.inc: $(2)
	@mkdir -p $$(@D) && sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' $$< > $$@
endef
$(foreach part,fence idem outbox,$(eval $(call as_c,$(part),src/$(part)/sql/%.sql)))
$(eval $(call as_c,serve,src/serve/%.html))
$(BUILD)/obj/src/serve/page.o: $(BUILD)/gen/serve/page.inc
$(eval $(call as_c,client,src/stores/redis/scripts/%.lua))
$(BUILD)/gen/client/plugins.inc: scripts/plugins.sh $(wildcard src/*/*/apt) src/serve/apt
	@mkdir -p $(@D) && scripts/plugins.sh table > $@
SQL_INC := $(addprefix $(BUILD)/gen/fence/,postgres.inc postgres_install.inc \
	postgres_row.inc sqlite.inc mariadb.inc mariadb_row.inc)
$(BUILD)/obj/src/fence/sql.o: $(SQL_INC)
CHECK_INC := $(addprefix $(BUILD)/gen/fence/check_,postgres.inc sqlite.inc mariadb.inc)
$(BUILD)/obj/src/cli/fence/check_table.o: $(CHECK_INC)
IDEM_INC := $(addprefix $(BUILD)/gen/idem/,postgres.inc sqlite.inc mariadb.inc)
$(BUILD)/obj/src/idem/sql.o: $(IDEM_INC)
OUTBOX_INC := $(addprefix $(BUILD)/gen/outbox/,postgres.inc sqlite.inc mariadb.inc)
$(BUILD)/obj/src/outbox/sql.o: $(OUTBOX_INC)
$(BUILD)/obj/src/client/fence.o: $(BUILD)/gen/client/fence.inc
$(BUILD)/obj/src/client/plugin_missing.o: $(BUILD)/gen/client/plugins.inc

# WHAT TO LINK, LIBRARIES
define link
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(1) $(ALL_LDFLAGS) $(2) -o $@
endef

$(LIB_A): $(call obj,$(LIB_SRC))
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(LIB_SO): $(call obj,$(LIB_SRC)) src/holdfast.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=src/holdfast.map \
		$(filter %.o,$^) $(ALL_LDFLAGS) -o $@
	@ln -sf $(@F) $(BUILD)/libholdfast.so

$(BIN): $(call obj,$(CLI_SRC)) $(LIB_A)
	$(call link,-pie $^)

$(SERVE_BIN): $(call obj,$(SERVE_SRC)) $(LIB_A)
	$(call link,-pie $^,$(shell pkg-config --libs $$(cat src/serve/packages)))

# What has these folders compiled in is made again when they change.
PLACE = $(PREFIX) $(BINDIR) $(LIBDIR) $(INCDIR) $(PLUGINDIR)
$(BUILD)/place: FORCE
	@mkdir -p $(@D) && echo '$(PLACE)' | cmp -s - $@ || echo '$(PLACE)' > $@
$(BUILD)/obj/src/client/plugin.o: PLACE_FLAGS = -DHF_PLUGIN_DIR='"$(PLUGINDIR)"'
$(BUILD)/obj/src/client/plugin.o: $(BUILD)/place
$(BUILD)/systemd/%: systemd/%.in $(BUILD)/place
	@mkdir -p $(@D) && sed 's|@BINDIR@|$(subst $(blank),\\x20,$(BINDIR))|' $< > $@
pc = $(subst $(blank),\\ ,$(1))
$(BUILD)/holdfast.pc: holdfast.pc.in Makefile include/holdfast.h $(BUILD)/place
	@sed -e 's|@PREFIX@|$(call pc,$(PREFIX))|; s|@VERSION@|$(VERSION)|' \
		-e 's|@LIBDIR@|$(call pc,$(LIBDIR:$(PREFIX)/%=$${prefix}/%))|' \
		-e 's|@INCDIR@|$(call pc,$(INCDIR:$(PREFIX)/%=$${prefix}/%))|' $< > $@

.SECONDEXPANSION:
$(STORE_SO): $(BUILD)/stores/%.so: $$(call store_obj,$$*) $(call obj,$(BASE_SRC) $(CORE_SRC))
	$(call link,-shared $^,$(call store_libs,$*))

$(DB_SO): $(BUILD)/stores/db-%.so: $$(call obj,$$(wildcard src/dbs/$$*/*.c) src/dbs/rows.c $(BASE_SRC))
	$(call link,-shared $^,$(shell pkg-config --libs $$(cat src/dbs/$*/packages)))

$(SENDER_SO): $(BUILD)/stores/send-%.so: $$(call obj,$$(wildcard src/senders/$$*/*.c) $(BASE_SRC) $(CORE_SRC))
	$(call link,-shared $^,$(shell pkg-config --libs $$(cat src/senders/$*/packages)))

.SECONDARY: $(STORES:%=$(BUILD)/gen/%.c)
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -c $< -o $@
$(BUILD)/gen/%.c: src/stores/%/scripts/embed.sh $$(wildcard src/stores/$$*/scripts/*.lua \
		src/stores/$$*/scripts/*.sql src/stores/$$*/scripts/lib/*.lua)
	@mkdir -p $(@D)
	@$< $(filter-out %.sh $(<D)/lib/%,$^) > $@

# Tests and measuring programs link the objects, so that they reach what the library hides.
$(UNIT) $(TOOLS): $(BUILD)/%: $(BUILD)/obj/%.o $$(call shared_obj,$$*) $(call obj,$(wildcard \
	tests/support/*.c)) $(LIB_A)
	$(call link,$(filter-out $(LIB_A),$^) $(LIB_A),-lcmocka)

define store_units
$(filter $(call of_plugin,$(1)),$(UNIT)): $(call store_obj,$(1))
$(filter $(call of_plugin,$(1)),$(UNIT)): LDFLAGS += $(call store_libs,$(1))
endef
$(foreach store,$(filter $(STORES),$(STORE_UNITS)),$(eval $(call store_units,$(store))))
# What the server decides is tested without its main, if it is built.
$(filter $(call of_plugin,serve),$(UNIT)): $(call obj,$(filter-out %/main.c,$(SERVE_SRC)))
$(filter $(call of_plugin,serve),$(UNIT)): LDFLAGS += $(if $(SERVE),$(shell pkg-config --libs $$(cat src/serve/packages)))
$(BUILD)/tests/tools/tool_storm: $(call obj,$(wildcard src/torture/*.c))
# It compares with libm, which holdfast does without.
$(BUILD)/tests/unit/test_odds: LDFLAGS += -lm
$(BUILD)/tests/dbs/tool_db: $(call obj,$(wildcard src/dbs/*.c))
$(BUILD)/tests/sim/tool_sim: $(call obj,$(filter-out %/tool_sim.c,$(wildcard tests/sim/*.c)))
$(BUILD)/tests/conform/conform: $(call obj,$(filter-out %/conform.c,$(wildcard tests/conform/*.c))) | $(STORE_SO)

# The N-th allocation fails: the linker puts the test's functions before the system's.
$(filter $(BUILD)/tests/unit/test_nomem%,$(UNIT)): LDFLAGS += $(addprefix -Wl$(,)--wrap=,malloc calloc \
	realloc strdup strndup asprintf __asprintf_chk fdopendir opendir eventfd timerfd_create pthread_create)

# The embedded store with its steps, which tests/support/steps.c answers; and a swap of words that errs on demand.
STEP_OBJ := $(patsubst %.c,$(BUILD)/steps/%.o,$(wildcard src/stores/file/*.c))
$(STEP_OBJ): $(BUILD)/steps/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,STEP,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -DHF_STEPS -fPIC -c $< -o $@
STEP_UNITS := $(filter $(addprefix $(BUILD)/tests/file/test_,crash_steps_% step_% between stopped wake),$(UNIT))
$(STEP_UNITS): $(STEP_OBJ)
$(filter $(BUILD)/tests/file/test_step_%,$(STEP_UNITS)): LDFLAGS += $(addprefix -Wl$(,)--wrap=,hf__word_swap hf__fifo_wake)

# The supervisor of `run`, which the test includes, with its other parts; kill is the test's.
RUN_SUPERVISE = $(BUILD)/tests/unit/test_run_supervise
$(RUN_SUPERVISE): $(call obj,$(filter-out %/supervise.c %/cmd_run.c %/job.c %/at_least.c src/cli/run/options.c,$(wildcard src/cli/run/*.c \
	src/cli/say/*.c src/cli/take/*.c src/cli/events/*.c) $(addprefix src/cli/,check.c kill.c signals.c)))
$(RUN_SUPERVISE): LDFLAGS += -Wl,--wrap=kill

$(PLUGINS): $(BUILD)/tests/plugins/%.so: $(BUILD)/obj/tests/support/plugins/%.o
	$(call link,-shared $^)

$(BENCH): $(BUILD)/%: $(BUILD)/obj/%.o $(LIB_A)
	$(call link,$^,-Wl$(,)--as-needed -lhiredis -lsqlite3 -lpq -lcurl -lzookeeper_mt -lmariadb)
$(BUILD)/bench/bench_outbox_pg: $(call obj,src/outbox/statements.c)
$(BUILD)/bench/bench_outbox_pg: LDFLAGS += $(LIB_A)
$(BENCH): CPPFLAGS += $(shell pkg-config --cflags libpq 2>/dev/null)

test-programs: everything $(UNIT) $(TOOLS) $(PLUGINS)
test-tools: $(TOOLS) $(STORE_SO) $(DB_SO)

# For authors of stores; see include/holdfast/store.h.
conform: $(BUILD)/tests/conform/conform
	@HOLDFAST_STORE_PATH="$${HOLDFAST_STORE_PATH:+$$HOLDFAST_STORE_PATH:}$(abspath $(BUILD)/stores)" $< '$(URL)'

deps:
	@scripts/deps.sh build
try: 
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory -s all
	@scripts/try.sh $(BIN)
check:
	@scripts/deps.sh build stores check
	@tests/run.sh check $(T)
test:
	@scripts/deps.sh build stores check test
	@tests/run.sh $(T)
test-long:
	@scripts/deps.sh build stores check test packages
	@tests/run.sh long $(T)
test-versions:
	@scripts/deps.sh build stores check test versions
	@$(MAKE) --no-print-directory -s test-programs
	@tests/versions/run.sh $(T)
bench:
	@scripts/deps.sh build stores check test bench
	@$(MAKE) --no-print-directory -s all $(BENCH)
	@bench/run.sh
model:
	@scripts/deps.sh build check test
	@tests/model/run.sh full
SEEDS ?= 1000000
sim: $(BUILD)/tests/sim/tool_sim
	$< --seeds $(SEEDS) --first $$(date +%s)000000
lint: $(SQL_INC) $(CHECK_INC) $(IDEM_INC) $(OUTBOX_INC) $(addprefix $(BUILD)/gen/client/,fence.inc plugins.inc) $(BUILD)/gen/serve/page.inc
	@scripts/deps.sh build stores lint
	@scripts/lint.sh
format:
	clang-format -i $$(git ls-files '*.c' '*.h')

PLACES = BUILD='$(BUILD)' DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' BINDIR='$(BINDIR)' LIBDIR='$(LIBDIR)' INCDIR='$(INCDIR)' \
	MANDIR='$(MANDIR)' PLUGINDIR='$(PLUGINDIR)' UNITDIR='$(UNITDIR)' LIB_SO='$(LIB_SO)' \
	PLUGINS='$(STORE_SO) $(DB_SO) $(SENDER_SO) $(SERVE_BIN)' scripts/install.sh
install: everything
	@$(PLACES) install
uninstall:
	@$(PLACES) uninstall
deb:
	@scripts/deps.sh build stores packages
	@scripts/deb.sh '$(BUILD)/deb'

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD)/obj $(BUILD)/steps -name '*.d' 2>/dev/null)
