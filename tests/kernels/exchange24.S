; Squares 24 bits in three blocks of two columns.  Two carries pass from block to block, that of the doubling and that of
; the diagonal; both count one in the same column, so it does not matter which chain takes which.  Both wait in r21.
; void sqr24(uint8_t *r, const uint8_t *a)
.global sqr24
sqr24:
    movw r26, r24
    movw r30, r22
    ld   r18, Z+
    ld   r19, Z+
    ld   r20, Z
    clr  r21
    mul  r18, r19           ; column 1 in r22
    movw r22, r0
    lsl  r22
    rol  r21
    mul  r18, r18
    st   X+, r0
    add  r22, r1
    rol  r21
    st   X+, r22
    mul  r18, r20           ; columns 2 and 3 in r23 and r24
    clr  r24
    add  r23, r0
    adc  r24, r1
    mul  r19, r20
    clr  r25
    add  r24, r0
    adc  r25, r1
    mul  r20, r20           ; the diagonal of columns 4 and 5
    movw r30, r0
    mul  r19, r19
    lsr  r21
    rol  r23
    rol  r24
    ror  r21                ; one carry out, one in
    adc  r23, r0
    adc  r24, r1
    rol  r21
    st   X+, r23
    st   X+, r24
    rol  r25                ; columns 4 and 5
    clr  r22
    rol  r22
    lsr  r21
    adc  r25, r30
    adc  r22, r31
    st   X+, r25
    st   X, r22
    clr  r1
    ret
