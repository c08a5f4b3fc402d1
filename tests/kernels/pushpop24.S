; Squares 24 bits; every finished limb waits on the stack and is popped for the store, last one first.
; void sqr24(uint8_t *r, const uint8_t *a)
.global sqr24
sqr24:
    movw r26, r24
    movw r30, r22
    ld   r18, Z+
    ld   r19, Z+
    ld   r20, Z
    adiw r26, 6             ; stores go downwards
    clr  r25
    mul  r18, r18           ; column 0
    push r0
    mov  r21, r1
    clr  r22
    clr  r23
    mul  r18, r19           ; column 1, twice
    add  r21, r0
    adc  r22, r1
    adc  r23, r25
    add  r21, r0
    adc  r22, r1
    adc  r23, r25
    push r21
    clr  r24
    mul  r18, r20           ; column 2
    add  r22, r0
    adc  r23, r1
    adc  r24, r25
    add  r22, r0
    adc  r23, r1
    adc  r24, r25
    mul  r19, r19
    add  r22, r0
    adc  r23, r1
    adc  r24, r25
    push r22
    mul  r19, r20           ; column 3
    clr  r22
    add  r23, r0
    adc  r24, r1
    adc  r22, r25
    add  r23, r0
    adc  r24, r1
    adc  r22, r25
    push r23
    mul  r20, r20           ; columns 4 and 5
    add  r24, r0
    adc  r22, r1
    st   -X, r22
    st   -X, r24
    pop  r0
    st   -X, r0
    pop  r0
    st   -X, r0
    pop  r0
    st   -X, r0
    pop  r0
    st   -X, r0
    clr  r1
    ret
