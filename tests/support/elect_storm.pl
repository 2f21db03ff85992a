# elect_storm.pl HOLDFAST URL SECONDS TTL_MS LOG [OPTION...] - starts five candidates for one lock, kills, stops
# and ends them and what they started, and judges by what their commands wrote.
#
# A leader's command and a process that it left behind append a line to LOG every 20 ms: term, candidate, pid,
# time. Appending is atomic, so the order of the lines is the order of the writes: a line of a term below one
# that came before was written by a child that outlived its leader.
#
# A tree that was stopped as a whole may write one last line when it thaws, before anybody can end it, and no
# lock can help that. So the ones who end it are woken first.
#
# With ELECT_STORM_BLIND all who could end a command are stopped, and the command is not: nothing can be
# promised then, and the judge must see it.
use strict;
use warnings;
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);
use POSIX qw(:sys_wait_h setsid _exit);

use constant { CANDIDATES => 5, SOFT_MAX => 2 };

my ($holdfast, $url, $seconds, $ttl_ms, $log, @options) = @ARGV;
my $ttl = $ttl_ms / 1000;
my (%pid, %soft, %frozen_until, @later, %faults, @journal);
my $stopping = 0;
my $seed = int(rand(1 << 30));
srand($seed);

my $worker = q{
    use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);
    open(my $log, '>>', $ARGV[0]) or die;
    if (fork() == 0) { use POSIX; POSIX::setsid(); }
    while (1) {
        syswrite($log, sprintf("%s %s %d %.3f\n", $ENV{HOLDFAST_TERM}, $ENV{CANDIDATE}, $$,
            clock_gettime(CLOCK_MONOTONIC)));
        sleep(0.02);
    }
};

sub now { return clock_gettime(CLOCK_MONOTONIC) }

sub start {
    my ($i) = @_;
    my $new = fork();
    die "fork: $!" unless defined $new;
    if ($new == 0) {
        $ENV{CANDIDATE} = $i;
        open(STDIN, '<', '/dev/null');
        { exec($holdfast, '--store', $url, 'elect', '--ttl', "${ttl_ms}ms", '--grace', '200ms', '--label', "c$i",
            '--leftover', 'term', @options, 'storm', '--', $^X, '-e', $worker, $log) }
        _exit(127);
    }
    $pid{$i} = $new;
    $soft{$i} = 0;
    $frozen_until{$i} = 0;
}

sub children {
    my ($parent) = @_;
    my @found;
    for my $file (glob("/proc/$parent/task/*/children")) {
        open(my $in, '<', $file) or next;
        push @found, split(' ', <$in> // '');
    }
    return @found;
}

sub tree { # all below, the deepest first
    my ($parent) = @_;
    return map { (tree($_), $_) } children($parent);
}

sub leader { # the candidate who wrote last, and the process
    open(my $in, '<', $log) or return;
    seek($in, -200, 2);
    my @lines = <$in>;
    my (undef, $i, $process) = split(' ', $lines[-1] // '');
    return ($i, $process);
}

sub later {
    my ($after, $what) = @_;
    push @later, [now() + $after, $what];
}

sub reap { # a candidate that has ended comes back
    for my $i (keys %pid) {
        next unless $pid{$i} && waitpid($pid{$i}, WNOHANG) > 0;
        $pid{$i} = 0;
        later(rand(1), sub { start($i) unless $stopping });
    }
}

my %act = (
    kill => sub { kill('KILL', $pid{$_[0]}) },
    end => sub { kill('TERM', $pid{$_[0]}) },
    kill_watchdog => sub { kill('KILL', (children($pid{$_[0]}))[0] // 0) if children($pid{$_[0]}) },
    kill_command => sub { my (undef, $process) = leader(); kill('KILL', $process) if $process },
    freeze => sub { # only the one who keeps the lease
        my $frozen = $pid{$_[0]};
        kill('STOP', $frozen);
        my $wake = $ttl * (1.2 + rand(1));
        $frozen_until{$_[0]} = now() + $wake + 1;
        later($wake, sub { kill('CONT', $frozen) });
    },
    freeze_tree => sub {
        my $top = $pid{$_[0]};
        my @below = tree($top);
        my %enders = map { $_ => 1 } children($top);
        my @commands = grep { !$enders{$_} } @below;
        kill('STOP', @commands, (keys %enders), $top);
        my $wake = $ttl * (1.2 + rand(1));
        $frozen_until{$_[0]} = now() + $wake + 2;
        later($wake, sub { kill('CONT', (keys %enders), $top) });
        later($wake + 1, sub { kill('CONT', @commands) });
    },
);

if ($ENV{ELECT_STORM_BLIND}) {
    %act = (
        blind => sub {
            my $top = $pid{$_[0]};
            my @enders = children($top);
            kill('STOP', @enders, $top);
            later(2 * $ttl, sub { kill('CONT', @enders, $top) });
        });
}

sub fault {
    my ($leading) = leader();
    my $i = defined $leading && rand() < 0.7 ? $leading : int(rand(CANDIDATES));
    # With one of those frozen who end a command, the other one must live: no more is promised.
    return if !$pid{$i} || $frozen_until{$i} > now();
    my @kinds = sort keys %act;
    # Short terms make the pauses longer: a candidate that had two of them begins anew.
    my $kind = $soft{$i} >= SOFT_MAX && $act{kill} ? (rand() < 0.5 ? 'kill' : 'end') : $kinds[int(rand(@kinds))];
    $soft{$i}++;
    $faults{$kind}++;
    push @journal, sprintf('%.3f %s %d', now(), $kind, $i);
    $act{$kind}->($i);
}

sub due {
    my @now = grep { $_->[0] <= now() } @later;
    @later = grep { $_->[0] > now() } @later;
    $_->[1]->() for @now;
}

sub stop_all { # those who are frozen thaw in their time, and in the right order
    $stopping = 1;
    while (@later) {
        due();
        sleep(0.05);
    }
    kill('TERM', grep { $_ } values %pid);
    my $until = now() + 30;
    while (now() < $until && grep { $_ } values %pid) {
        for my $i (keys %pid) {
            $pid{$i} = 0 if $pid{$i} && waitpid($pid{$i}, WNOHANG) > 0;
        }
        sleep(0.05);
    }
    kill('KILL', grep { $_ } values %pid);
    return scalar grep { $_ } values %pid;
}
$SIG{TERM} = $SIG{INT} = sub { stop_all(); exit(1) };

sub judge {
    my ($began, $ended, $stuck) = @_;
    my ($highest, $bad, $terms, $last, $longest, $total) = (0, 0, 0, $began, 0, 0);
    my (%who, %workers);
    open(my $in, '<', $log) or die "no leader wrote anything: $!";
    while (my $line = <$in>) {
        my ($term, $i, $process, $at) = split(' ', $line);
        if ($term < $highest) {
            print "$at: a child of term $term (candidate $i, pid $process) lives beside term $highest\n" if $bad++ < 5;
        }
        if ($term > $highest) {
            $highest = $term;
            $terms++;
        }
        print "term $term has two leaders\n" if $who{$term} && $who{$term} ne $i && $bad++ < 5;
        $who{$term} = $i;
        $workers{$process} = 1;
        if ($at > $last && $at < $ended) {
            $longest = $at - $last if $at - $last > $longest;
            $total += $at - $last if $at - $last > 0.5;
            $last = $at;
        }
    }
    $longest = $ended - $last if $ended - $last > $longest;
    print "$_\n" for $bad ? @journal : ();
    my $left = grep { -e "/proc/$_" && cmdline($_) =~ /\Q$log\E/ } keys %workers;
    printf "%s\n", join(', ', map { "$_ $faults{$_}" } sort keys %faults);
    printf "without a leader: %.1fs at the longest, %.1fs of %.0fs in all\n", $longest, $total, $ended - $began;
    printf "seed %d terms %d faults %d leaderless_ms %d left_behind %d\n", $seed, $terms,
        eval { my $sum = 0; $sum += $_ for values %faults; $sum }, $longest * 1000, $left + $stuck;
    return $bad == 0;
}

sub cmdline {
    open(my $in, '<', "/proc/$_[0]/cmdline") or return '';
    return <$in> // '';
}

start($_) for 0 .. CANDIDATES - 1;
my $began = now();
sleep(0.05) while !-s $log && now() < $began + 60;
$began = now();
my $next = now() + 1;
while (now() < $began + $seconds) {
    reap();
    due();
    if (now() >= $next) {
        fault();
        $next = now() + 0.4 + rand(1.6);
    }
    sleep(0.05);
}
my $ended = now();
my $stuck = stop_all();
my $until = now() + 10; # those whom a killed candidate's watchdog ends
sleep(0.1) while now() < $until && grep { cmdline($_) =~ /\Q$log\E/ } map { m{/proc/(\d+)$} ? $1 : () } glob('/proc/[0-9]*');
exit(judge($began, $ended, $stuck) ? 0 : 1);
